// Data of the page: an index of all sentences, and chunks that are decompressed when one of their sentences is opened.

const BEFORE = "moses";
const AFTER = "reranked";

async function decompress(id) {
  const compressed = Uint8Array.from(atob(find(id).textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

function showFailure(failure) {
  find("failure").textContent = failure;
  find("failure").hidden = false;
  find("failure").scrollIntoView();
}

// Report data that cannot be read: the browser is too old, or the file is damaged.
const showError = (error) => showFailure(`The sentences cannot be shown: ${error}`);

const chunks = new Map();

// Return the candidates of a sentence and their details, or null if it has none.
async function readCandidates(sentence) {
  if (sentence.chunk === null) return null;
  if (!chunks.has(sentence.chunk)) chunks.set(sentence.chunk, decompress(`chunk-${sentence.chunk}`));
  return (await chunks.get(sentence.chunk))[sentence.id];
}

// Convert the columns of the index to one object per sentence. Missing values are null.
function readSentences(index) {
  return index.source.map((source, id) => {
    const references = index.references.map((lines) => lines[id]);
    const [before, after] = [index.before[id], index.after[id]];
    const numbers = ["gain", "expected", "helped", "score_gain"].map((name) => [name, index[name][id] ?? null]);
    const words = [source, ...references, before, after].join("\n").toLowerCase();
    return { id, source, references, before, after, words, chunk: index.chunk[id], ...Object.fromEntries(numbers) };
  });
}

const isChanged = (sentence) => sentence.before !== sentence.after;
