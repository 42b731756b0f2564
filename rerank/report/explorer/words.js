// Differences of two lines in words.

const split = (line) => line.split(" ").filter((word) => word);

// Return the runs of words of both lines in order, as [kind, words] with the kinds "same", "old" and "new".
function differences(before, after) {
  const [old, now] = [split(before), split(after)];
  if (before === after) return old.length ? [["same", old]] : [];
  const common = commonLengths(old, now);
  const runs = [];
  const add = (kind, word) => {
    if (runs.at(-1)?.[0] === kind) runs.at(-1)[1].push(word);
    else runs.push([kind, [word]]);
  };
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      add("same", old[i]);
      [i, j] = [i + 1, j + 1];
    } else if (j === now.length || (i < old.length && common[i + 1][j] >= common[i][j + 1])) {
      add("old", old[i++]);
    } else {
      add("new", now[j++]);
    }
  }
  return runs;
}

// Return rows[i][j]: length of the longest common subsequence of old[i…] and now[j…].
function commonLengths(old, now) {
  const rows = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      rows[i][j] = old[i] === now[j] ? rows[i + 1][j + 1] + 1 : Math.max(rows[i + 1][j], rows[i][j + 1]);
    }
  }
  return rows;
}

const MARKS = { old: "del", new: "ins" };

// Return nodes for the runs of these kinds, separated by spaces. Words of only one line are in <del> or <ins>.
function marked(runs, kinds) {
  const nodes = runs
    .filter(([kind]) => kinds.includes(kind))
    .map(([kind, words]) => (MARKS[kind] ? make(MARKS[kind], {}, words.join(" ")) : words.join(" ")));
  return nodes.flatMap((node, index) => (index ? [" ", node] : [node]));
}
