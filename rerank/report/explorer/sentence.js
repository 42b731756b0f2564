// One sentence: texts, reasons of the change, attention, and all candidates.

const reading = { id: null, system: AFTER };

const OVERVIEW = document.title;

// Show a sentence. Its candidates are added when their chunk is decompressed.
async function showSentence(id) {
  const sentence = list.sentences[id];
  reading.id = id;
  document.title = `Sentence ${id}, ${OVERVIEW}`;
  showPosition();
  const heading = make("h2", { tabindex: "-1" }, `Sentence ${id}`);
  find("reading").replaceChildren(heading, make("p", { class: "judged" }, judgement(sentence)), sentenceTexts(sentence));
  document.body.classList.add("reading");
  find("sentence").hidden = false;
  scrollTo(0, 0);
  if (!document.activeElement.matches("nav button:enabled")) heading.focus({ preventScroll: true });
  const data = await readCandidates(sentence);
  if (heading.isConnected) find("reading").append(...details(sentence, data));
}

function closeSentence() {
  const id = reading.id;
  reading.id = null;
  document.title = OVERVIEW;
  document.body.classList.remove("reading");
  find("sentence").hidden = true;
  find("reading").replaceChildren();
  if (id === null) return;
  if (["", "#sentences"].includes(location.hash)) focusRow(id);
  else find(location.hash.slice(1))?.scrollIntoView();
}

// Return the previous (-1) or next (1) sentence of the list. If this sentence is not in the list: the last or the first one.
function neighbour(step) {
  const index = list.shown.findIndex((each) => each.id === reading.id);
  return index < 0 ? list.shown.at(Math.min(0, step)) : list.shown[index + step];
}

function showPosition() {
  const index = list.shown.findIndex((each) => each.id === reading.id);
  find("previous").disabled = !neighbour(-1);
  find("next").disabled = !neighbour(1);
  find("position").textContent = index < 0 ? "" : `${index + 1} of ${list.shown.length}`;
}

// Return a sentence of text with the scores of the change.
function judgement({ gain, expected, helped, score_gain, ...sentence }) {
  const parts = [isChanged(sentence) ? "changed" : "not changed"];
  if (gain !== null) parts.push(`sentence BLEU gain ${signed(gain, 1)}`);
  if (score_gain !== null) parts.push(`model score gain ${signed(score_gain, 3)}`);
  if (expected !== null) parts.push(`expected ${list.metric} ${expected.toFixed(1)}`);
  if (helped !== null) parts.push(`better than Moses with probability ${helped.toFixed(2)}`);
  return parts.join(", ");
}

// Return source, references and both choices below each other. Words that only one choice has are marked.
function sentenceTexts({ source, references, before, after }) {
  const runs = differences(before, after);
  const many = references.length > 1;
  const lines = [
    ["source", [source]],
    ...references.map((line, index) => [many ? `reference ${index + 1}` : "reference", [line]]),
    [BEFORE, marked(runs, ["same", "old"])],
    [AFTER, marked(runs, ["same", "new"])],
  ];
  return make("dl", {}, ...lines.flatMap(([name, line]) => [make("dt", {}, name), text("dd", ...line)]));
}

function details(sentence, data) {
  if (data === null) return [make("p", {}, "The list has no candidates of this sentence.")];
  const count = data.text.length;
  return [
    ...(data.reasons.length ? [make("h3", {}, "Why it changed"), whyNote(), reasonBars(data.reasons)] : []),
    ...attended(sentence, data.systems),
    make("h3", {}, count === 1 ? "1 candidate" : `${count} candidates`),
    make("p", {}, "Bars show the contributions of the features to the model score, relative to the mean of all candidates of this sentence. Click on a bar for its numbers."),
    legend(data.features),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Candidates" }, candidateTable(data)),
  ];
}

const whyNote = () =>
  make("p", {}, "Contribution of each feature to the difference in model score, reranked minus moses. Green favours the reranked translation, red the translation by Moses.");

// Return the grids of one choice, with a switch if both choices have grids. Empty if there is no grid.
function attended(sentence, systems) {
  const names = Object.keys(systems).filter((name) => hasGrids(systems[name]));
  if (!names.length) return [];
  const box = make("div");
  const show = (system) => {
    box.replaceChildren(...grids(sentence, system, systems[system]));
    for (const each of choice.children) each.setAttribute("aria-pressed", String(each.value === system));
  };
  const buttons = names.map((value) => make("button", { type: "button", value }, value));
  const choice = make("p", { class: "switch" }, ...(names.length > 1 ? buttons : []));
  choice.addEventListener("click", ({ target }) => {
    if (!target.value) return;
    reading.system = target.value;
    show(target.value);
  });
  show(names.includes(reading.system) ? reading.system : names[0]);
  return [make("h3", {}, "Attention and alignment"), choice, box];
}
