// The candidates of a sentence, as a table that sorts.

const candidateColumns = (joined) => [
  { key: "place", name: "List", about: joined ? "position in the merged list" : "position in the list, as ranked by Moses" },
  { key: "rank", name: "Rank", about: "rank by the reranker" },
  { key: "bleu", name: "BLEU", descending: true, about: "sentence BLEU, smoothed" },
  { key: "score", name: "Score", descending: true, about: "model score" },
  { name: "Candidate" },
  { name: "Features", about: "contributions of the features, relative to the mean of all candidates of this sentence" },
];

function candidateTable(data) {
  const columns = candidateColumns(data.lists.length > 0).filter(({ key }) => key !== "bleu" || data.bleu.length);
  const candidates = data.text.map((words, place) => {
    const [rank, score, bleu] = [data.rank[place], data.score[place], data.bleu[place] ?? null];
    return { place: place + 1, rank, score, bleu, words, tags: tags(data, place), lists: data.lists[place] };
  });
  const { means, off } = againstMean(data.parts);
  const largest = largestSum(off, candidates.length);
  const rows = candidates.map((each) => candidateRow(each, columns.length, data, means, off, largest));
  const table = make("table", { class: "candidates" }, make("thead"), make("tbody"));
  let order = { key: "rank", descending: false };
  const show = () => {
    replaceHead(table.tHead, headings(columns, order, sortBy));
    table.tBodies[0].replaceChildren(...sorted(candidates, order).flatMap(({ place }) => rows[place - 1]));
  };
  const sortBy = (key) => {
    order = clicked(order, columns, key);
    show();
  };
  show();
  return table;
}

// Return what sets a candidate apart: who chose it, and whether it is the best one.
function tags(data, place) {
  const systems = Object.entries(data.systems).filter(([, system]) => system.place === place);
  const names = systems.map(([system]) => (Object.keys(data.systems).length > 1 ? system : "both"));
  if (data.best === place) names.push("best");
  return names;
}

// Return the row of a candidate and a second one with its numbers, which its bar opens.
function candidateRow(candidate, width, data, means, off, largest) {
  const { place, rank, bleu, score, words, lists } = candidate;
  const bar = make("button", { type: "button", class: "parts", "aria-expanded": "false" });
  bar.setAttribute("aria-label", `features of candidate ${place}, ${signed(sumOff(off, place - 1), 3)} relative to the mean`);
  bar.append(stackedBar(data.features, off, place - 1, largest));
  const more = make("tr", { class: "more", hidden: "" }, make("td", { colspan: width }));
  bar.addEventListener("click", () => {
    more.hidden = !more.hidden;
    bar.setAttribute("aria-expanded", String(!more.hidden));
    more.firstChild.replaceChildren(partsTable(data, means, place - 1));
  });
  const origin = lists ? [`from ${lists}`] : [];
  const chips = [...candidate.tags, ...origin].flatMap((tag) => [" ", make("small", { class: "tag" }, tag)]);
  const row = make("tr", { "data-place": place, class: candidate.tags.length ? "marked" : "" });
  row.append(make("td", {}, `${place}`), make("td", {}, `${rank}`));
  if (bleu !== null) row.append(make("td", {}, bleu.toFixed(1)));
  row.append(make("td", {}, signed(score, 3)), make("td", { class: "words" }, text("span", words), ...chips), make("td", {}, bar));
  return [row, more];
}

const sumOff = (off, place) => off.reduce((sum, column) => sum + column[place], 0);

// Return the numbers of a candidate's features, what sets it apart most first.
function partsTable(data, means, place) {
  const rows = data.features
    .map((name, feature) => ({ name, part: data.parts[feature][place], mean: means[feature] }))
    .sort((one, other) => Math.abs(other.part - other.mean) - Math.abs(one.part - one.mean));
  const head = ["feature", "weighted", "mean of all", "difference"].map((name) => make("th", { scope: "col" }, name));
  const body = rows.map(({ name, part, mean }) => {
    const numbers = [part, mean, part - mean].map((number) => make("td", {}, signed(number, 4)));
    return make("tr", {}, make("th", { scope: "row" }, name), ...numbers);
  });
  return make("table", { class: "numbers" }, make("tr", {}, ...head), ...body);
}
