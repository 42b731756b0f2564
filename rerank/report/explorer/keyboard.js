// Keys and the address of the page: `#s264` opens sentence 264.

// Open the sentence of the address, or the list.
function followAddress() {
  const [, id] = /^#s(\d+)$/.exec(location.hash) ?? [];
  find("failure").hidden = true;
  if (id in list.sentences) return showSentence(Number(id)).catch(showError);
  closeSentence();
  if (id) showFailure(`There is no sentence ${id}`);
}

// Open the previous or next sentence and replace the history entry, so that "back" returns to the view before reading.
function step(by) {
  const sentence = neighbour(by);
  if (sentence) location.replace(`#s${sentence.id}`);
}

function toSearch() {
  closeSentence();
  location.hash = "sentences";
  find("search").focus();
}

const WHILE_READING = {
  ArrowLeft: () => step(-1),
  k: () => step(-1),
  ArrowRight: () => step(1),
  j: () => step(1),
  Escape: () => (location.hash = "sentences"),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("#search")) return;
  if (event.key.startsWith("Arrow") && event.target.matches(".scroll")) return;
  const action = event.key === "/" ? toSearch : reading.id !== null && WHILE_READING[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}
