// Export: the shown sentences as TSV, and the open sentence or all shown changes on paper.

const SAVED = ["id", "gain", "expected", "p_better", "model score gain", "source", "reference", BEFORE, AFTER];

// Return sentences as TSV. No text contains a tab or a line end.
function asTable(sentences) {
  const rows = sentences.map(({ id, gain, expected, helped, score_gain, source, references, before, after }) => {
    const cells = [id, gain, expected, helped, score_gain, source, references.join(" ||| "), before, after];
    return cells.map((cell) => cell ?? "").join("\t");
  });
  return [SAVED.join("\t"), ...rows].map((row) => `${row}\n`).join("");
}

function saveShown() {
  const address = URL.createObjectURL(new Blob([asTable(list.shown)], { type: "text/tab-separated-values" }));
  make("a", { href: address, download: "sentences.tsv" }).click();
  URL.revokeObjectURL(address);
}

// Before printing, add all shown sentences that changed. An open sentence is printed alone.
function printShown() {
  if (reading.id !== null) return;
  const changed = list.shown.filter(isChanged);
  const articles = changed.map((sentence) => {
    const heading = make("h3", {}, `Sentence ${sentence.id}`);
    return make("article", {}, heading, make("p", { class: "judged" }, judgement(sentence)), sentenceTexts(sentence));
  });
  const counts = `${changed.length} of the ${list.shown.length} sentences shown`;
  find("printed").replaceChildren(make("h2", {}, `Sentences that changed: ${counts}`), ...articles);
}

const forgetPrinted = () => find("printed").replaceChildren();
