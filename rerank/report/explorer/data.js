// The data of the page: an index of all sentences, and chunks of them that are unpacked when one of theirs is opened.

const BEFORE = "moses";
const AFTER = "reranked";

async function unpack(id) {
  const packed = Uint8Array.from(atob(find(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

function tell(failure) {
  find("failure").textContent = failure;
  find("failure").hidden = false;
  find("failure").scrollIntoView();
}

// Say that data cannot be read: the browser is too old for it, or the file was cut.
const tellFailure = (error) => tell(`The sentences cannot be shown: ${error}`);

const chunks = new Map();

// Return what is known of the candidates of a sentence, null if it has none.
async function readCandidates(sentence) {
  if (sentence.chunk === null) return null;
  if (!chunks.has(sentence.chunk)) chunks.set(sentence.chunk, unpack(`chunk-${sentence.chunk}`));
  return (await chunks.get(sentence.chunk))[sentence.id];
}

// Make an object a sentence of the columns of the index; numbers that are not known are null.
function readSentences(index) {
  return index.source.map((source, id) => {
    const references = index.references.map((lines) => lines[id]);
    const [before, after] = [index.before[id], index.after[id]];
    const numbers = ["gain", "expected", "helped", "clarity"].map((name) => [name, index[name][id] ?? null]);
    const words = [source, ...references, before, after].join("\n").toLowerCase();
    return { id, source, references, before, after, words, chunk: index.chunk[id], ...Object.fromEntries(numbers) };
  });
}

const isChanged = (sentence) => sentence.before !== sentence.after;
