// What leaves the page: a table of the sentences that are shown and, on paper, the sentence that is read or these.

const SAVED = ["id", "gain", "expected", "helped", "model score", "source", "reference", BEFORE, AFTER];

// Return the table; no text has a tab or an end of a line in it.
function asTable(sentences) {
  const rows = sentences.map(({ id, gain, expected, helped, clarity, source, references, before, after }) => {
    const cells = [id, gain, expected, helped, clarity, source, references.join(" ||| "), before, after];
    return cells.map((cell) => cell ?? "").join("\t");
  });
  return [SAVED.join("\t"), ...rows].map((row) => `${row}\n`).join("");
}

function saveShown() {
  const address = URL.createObjectURL(new Blob([asTable(list.shown)], { type: "text/tab-separated-values" }));
  make("a", { href: address, download: "sentences.tsv" }).click();
  URL.revokeObjectURL(address);
}

// Put what changed among the sentences that are shown on paper; a sentence that is read stands there by itself.
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
