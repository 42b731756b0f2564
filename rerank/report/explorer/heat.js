// Grids of source and target words: attention of models, and Moses' own alignment and phrases.

const MOST_CELLS = 3600; // maximum cells of a map that is drawn at once: opening a sentence with more takes seconds

// Return a map, source words along the top and target words down the side; `cellOf(j, i)` makes a cell.
function grid(caption, source, target, cellOf) {
  const map = make("div", { class: "map" }, make("h4", {}, caption));
  if (source.length * target.length <= MOST_CELLS) {
    map.append(...drawn(caption, source, target, cellOf));
    return map;
  }
  const ask = make("button", { type: "button" }, `Show ${target.length} × ${source.length} cells`);
  ask.addEventListener("click", () => {
    const parts = drawn(caption, source, target, cellOf);
    ask.replaceWith(...parts);
    parts[0].focus();
  });
  map.append(ask);
  return map;
}

// Return a scrollable box with the cells, and a line below it that shows the value of the current cell.
function drawn(caption, source, target, cellOf) {
  const head = make("tr", {}, make("td"), ...source.map((word) => make("th", { scope: "col" }, text("span", word))));
  const rows = target.map((word, j) => {
    const cells = source.map((_, i) => cellOf(j, i));
    return make("tr", {}, make("th", { scope: "row" }, text("span", word)), ...cells);
  });
  const table = make("table", { class: "matrix" }, make("thead", {}, head), make("tbody", {}, ...rows));
  const cellValue = make("output", {}, "");
  const showCell = (event) => (cellValue.textContent = event.target.closest("td[title]")?.title ?? "");
  table.addEventListener("pointerover", showCell);
  table.addEventListener("click", showCell);
  const box = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
  box.addEventListener("keydown", (event) => toNeighbour(event, table, cellValue));
  return [box, cellValue];
}

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

// Move the current cell with an arrow key, starting in the top left corner, and show its value.
function toNeighbour(event, table, cellValue) {
  const move = MOVES[event.key];
  if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
  const current = table.querySelector(".current");
  const [j, i] = current ? [current.parentNode.sectionRowIndex + move[0], current.cellIndex + move[1]] : [0, 1];
  const cell = table.tBodies[0].rows[j]?.cells[i];
  if (!cell?.title) return;
  event.preventDefault();
  current?.classList.remove("current");
  cell.classList.add("current");
  cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  cellValue.textContent = cell.title;
}

function gridCell(label, weight, kind) {
  const cell = make("td", { title: label, "aria-label": label, class: kind });
  cell.style.setProperty("--weight", weight);
  return cell;
}

function heatMap({ model, weights }, source, target) {
  return grid(`${model}: attention`, source, target, (j, i) =>
    gridCell(`${apart(target[j])} on ${apart(source[i])}: ${weights[j][i]}`, weights[j][i], "weight"),
  );
}

function alignmentMap({ links, phrases }, source, target) {
  const linked = new Set(links.map(([i, j]) => `${i} ${j}`));
  const inPhrase = (j, i) =>
    phrases.some(([first, last, start, end]) => first <= i && i <= last && start <= j && j <= end);
  const caption = phrases.length ? "links of words, and phrases" : "links of words";
  return grid(`Moses: ${caption}`, source, target, (j, i) => {
    const kinds = [linked.has(`${i} ${j}`) && "linked", inPhrase(j, i) && "same phrase"].filter((kind) => kind);
    const label = `${apart(target[j])} – ${apart(source[i])}: ${kinds.join(", ") || "not linked"}`;
    return gridCell(label, Number(linked.has(`${i} ${j}`)), inPhrase(j, i) ? "phrase" : "");
  });
}

// Return the phrases in the order of the target, as pairs.
function phraseList(phrases, source, target) {
  const pairs = phrases.map(([first, last, start, end]) => {
    const [from, to] = [source.slice(first, last + 1), target.slice(start, end + 1)];
    return make("li", {}, text("span", from.join(" ")), " → ", text("span", to.join(" ")));
  });
  return make("ol", { class: "phrases", "aria-label": "Moses’ phrases" }, ...pairs);
}

const hasGrids = ({ attention, links, phrases }) => attention.length + links.length + phrases.length > 0;

// Return all grids of a system's choice, and its phrases.
function grids(sentence, system, { attention, links, phrases }) {
  const source = split(sentence.source);
  const target = split(system === AFTER ? sentence.after : sentence.before);
  const maps = attention.map((each) => heatMap(each, source, target));
  if (links.length || phrases.length) maps.push(alignmentMap({ links, phrases }, source, target));
  const lists = phrases.length ? [phraseList(phrases, source, target)] : [];
  return [make("div", { class: "grids" }, ...maps), ...lists];
}
