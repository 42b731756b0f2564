// The candidates of a sentence, as a table that can be sorted.

const candidateColumns = (merged) => [
  { key: "position", name: "List", about: merged ? "position in the merged list" : "position in the list, as ranked by Moses" },
  { key: "rank", name: "Rank", about: "rank by the reranker" },
  { key: "bleu", name: "BLEU", descending: true, about: "sentence BLEU, smoothed" },
  { key: "score", name: "Score", descending: true, about: "model score" },
  { name: "Candidate" },
  { name: "Features", about: "contributions of the features, relative to the mean of all candidates of this sentence" },
];

function candidateTable(data) {
  const columns = candidateColumns(data.lists.length > 0).filter(({ key }) => key !== "bleu" || data.bleu.length);
  const candidates = data.text.map((words, index) => {
    const [rank, score, bleu] = [data.rank[index], data.score[index], data.bleu[index] ?? null];
    return { index, position: index + 1, rank, score, bleu, words, tags: tags(data, index), lists: data.lists[index] };
  });
  const { means, off } = againstMean(data.parts);
  const largest = largestSum(off, candidates.length);
  const rows = candidates.map((each) => candidateRow(each, columns.length, data, means, off, largest));
  const table = make("table", { class: "candidates" }, make("thead"), make("tbody"));
  let order = { key: "rank", descending: false };
  const show = () => {
    replaceHead(table.tHead, headings(columns, order, sortBy));
    table.tBodies[0].replaceChildren(...sorted(candidates, order).flatMap(({ index }) => rows[index]));
  };
  const sortBy = (key) => {
    order = clicked(order, columns, key);
    show();
  };
  show();
  return table;
}

// Return the labels of a candidate: the systems that chose it, and "oracle" for the highest sentence BLEU.
function tags(data, index) {
  const systems = Object.entries(data.systems).filter(([, system]) => system.index === index);
  const names = systems.map(([system]) => (Object.keys(data.systems).length > 1 ? system : "both"));
  if (data.oracle === index) names.push("oracle");
  return names;
}

// Return two rows: a candidate, and its feature values, which are hidden until its bar is clicked.
function candidateRow(candidate, width, data, means, off, largest) {
  const { index, position, rank, bleu, score, words, lists } = candidate;
  const bar = make("button", { type: "button", class: "parts", "aria-expanded": "false" });
  bar.setAttribute("aria-label", `features of candidate ${position}, ${signed(sumOff(off, index), 3)} relative to the mean`);
  bar.append(stackedBar(data.features, off, index, largest));
  const more = make("tr", { class: "more", hidden: "" }, make("td", { colspan: width }));
  bar.addEventListener("click", () => {
    more.hidden = !more.hidden;
    bar.setAttribute("aria-expanded", String(!more.hidden));
    more.firstChild.replaceChildren(partsTable(data, means, index));
  });
  const origin = lists ? [`from ${lists}`] : [];
  const chips = [...candidate.tags, ...origin].flatMap((tag) => [" ", make("small", { class: "tag" }, tag)]);
  const row = make("tr", { "data-position": position, class: candidate.tags.length ? "marked" : "" });
  row.append(make("td", {}, `${position}`), make("td", {}, `${rank}`));
  if (bleu !== null) row.append(make("td", {}, bleu.toFixed(1)));
  row.append(make("td", {}, signed(score, 3)), make("td", { class: "words" }, text("span", words), ...chips), make("td", {}, bar));
  return [row, more];
}

const sumOff = (off, index) => off.reduce((sum, column) => sum + column[index], 0);

// Return a table of the features of a candidate, largest difference from the mean first.
function partsTable(data, means, index) {
  const rows = data.features
    .map((name, feature) => ({ name, part: data.parts[feature][index], mean: means[feature] }))
    .sort((one, other) => Math.abs(other.part - other.mean) - Math.abs(one.part - one.mean));
  const head = ["feature", "weighted", "mean of all", "difference"].map((name) => make("th", { scope: "col" }, name));
  const body = rows.map(({ name, part, mean }) => {
    const numbers = [part, mean, part - mean].map((number) => make("td", {}, signed(number, 4)));
    return make("tr", {}, make("th", { scope: "row" }, name), ...numbers);
  });
  return make("table", { class: "numbers" }, make("tr", {}, ...head), ...body);
}
