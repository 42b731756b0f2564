// What leaves the page: a table of the sentences that are shown, and the changed sentences on paper.

const SAVED = ["id", "gain", "expected", "source", "reference", "before", "after"];

// Return the table; no text has a tab or an end of a line in it.
function asTable(sentences) {
  const rows = sentences.map(({ id, gain, expected, source, references, before, after }) =>
    [id, gain, expected, source, references.join(" ||| "), before, after].map((cell) => cell ?? "").join("\t"),
  );
  return [SAVED.join("\t"), ...rows].map((row) => `${row}\n`).join("");
}

function saveShown() {
  const address = URL.createObjectURL(new Blob([asTable(list.shown)], { type: "text/tab-separated-values" }));
  make("a", { href: address, download: "sentences.tsv" }).click();
  URL.revokeObjectURL(address);
}

function printChanged() {
  const changed = sorted(list.sentences.filter(isChanged), list.order);
  const articles = changed.map((sentence) => {
    const heading = make("h3", {}, `Sentence ${sentence.id}`);
    return make("article", {}, heading, make("p", { class: "judged" }, judgement(sentence)), sentenceTexts(sentence));
  });
  find("printed").replaceChildren(make("h2", {}, "Sentences that changed"), ...articles);
}

const forgetPrinted = () => find("printed").replaceChildren();
