// The list of sentences: search, filter, order, and a row for each shown sentence.

const STRETCH = 200; // rows that are added at a time while scrolling

const KINDS = {
  all: () => true,
  changed: isChanged,
  "higher BLEU": (sentence) => sentence.gain > 0,
  "lower BLEU": (sentence) => sentence.gain < 0,
  "not changed": (sentence) => !isChanged(sentence),
};

const list = { sentences: [], columns: [], shown: [], kind: "all", order: { key: "id", descending: false }, rows: 0 };

function startList(index) {
  const judged = index.references.length > 0;
  list.sentences = readSentences(index);
  list.columns = listColumns(index.metric).filter(({ key }) => !key || list.sentences.some((each) => each[key] !== null));
  list.order = { key: judged && index.gain.length ? "gain" : index.score_gain.length ? "score_gain" : "id" };
  list.order.descending = list.order.key !== "id";
  const kinds = Object.keys(KINDS).filter((kind) => judged || !["higher BLEU", "lower BLEU"].includes(kind));
  find("kinds").append(...kinds.map(kindChoice));
  find("choice").addEventListener("submit", (event) => event.preventDefault());
  find("search").addEventListener("input", showList);
  find("kinds").addEventListener("change", (event) => {
    list.kind = event.target.value;
    showList();
  });
  document.querySelector(".list tbody").addEventListener("click", openRow);
  new IntersectionObserver((entries) => entries.some((each) => each.isIntersecting) && addRows(), {
    rootMargin: "1000px",
  }).observe(find("end"));
  showList();
}

const listColumns = (metric) => [
  { key: "id", name: "Id" },
  { key: "gain", name: "Gain", descending: true, about: "sentence BLEU, reranked minus moses" },
  { name: "Change", cell: "what" },
  { name: "Source", cell: "source" },
  { key: "expected", name: `Expected ${metric}`, about: `expected ${metric} of the reranked choice` },
  { key: "helped", name: "P(better)", about: "probability that the reranked translation is better than Moses’" },
  { key: "score_gain", name: "Model score gain", descending: true, about: "model score, reranked minus moses" },
];

function kindChoice(kind) {
  const attributes = { type: "radio", name: "kind", value: kind, ...(kind === list.kind && { checked: "" }) };
  const count = list.sentences.filter(KINDS[kind]).length;
  return make("label", {}, make("input", attributes), `${kind} (${count})`);
}

// Show the sentences that match search and filter, from the first one on.
function showList() {
  const words = find("search").value.toLowerCase().trim();
  const chosen = list.sentences.filter((each) => KINDS[list.kind](each) && each.words.includes(words));
  list.shown = sorted(chosen, list.order);
  list.rows = 0;
  find("count").textContent = `${list.shown.length} of ${list.sentences.length} sentences`;
  replaceHead(document.querySelector(".list thead"), headings(list.columns, list.order, sortListBy));
  document.querySelector(".list tbody").replaceChildren();
  addRows();
}

function sortListBy(key) {
  list.order = clicked(list.order, list.columns, key);
  showList();
}

function addRows() {
  const more = list.shown.slice(list.rows, list.rows + STRETCH);
  list.rows += more.length;
  document.querySelector(".list tbody").append(...more.map(listRow));
}

function listRow(sentence) {
  const { id, source, before, after, gain, expected, helped, score_gain } = sentence;
  const what = text("td", ...marked(differences(before, after), ["same", "old", "new"]));
  what.className = isChanged(sentence) ? "words" : "words same";
  const cells = {
    what,
    source: make("td", { dir: "auto", class: "words" }, source),
    id: make("th", { scope: "row" }, make("a", { href: `#s${id}` }, `${id}`)),
    gain: make("td", {}, known(gain, () => signed(gain, 1))),
    expected: make("td", {}, known(expected, () => expected.toFixed(1))),
    helped: make("td", {}, known(helped, () => helped.toFixed(2))),
    score_gain: make("td", {}, known(score_gain, () => signed(score_gain, 2))),
  };
  return make("tr", { "data-id": id }, ...list.columns.map(({ key, cell }) => cells[key ?? cell]));
}

// Open a row on a click anywhere on it, except at the end of a text selection.
function openRow(event) {
  const row = event.target.closest("tr");
  if (row && !event.target.closest("a") && getSelection().isCollapsed) location.hash = `s${row.dataset.id}`;
}

// Scroll to the row of a sentence and focus its link.
function focusRow(id) {
  const index = list.shown.findIndex((each) => each.id === id);
  while (index >= list.rows) addRows();
  const link = document.querySelector(`.list [data-id="${id}"] a`);
  link?.scrollIntoView({ block: "center" });
  link?.focus({ preventScroll: true });
}
