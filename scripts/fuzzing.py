"""The readers of files from outside, valid files for each reader, and mutations of files.

Used by `scripts/fuzz` and the tests.
"""

import gzip
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from features.cache import FILE, Cache
from features.feature import Resources
from features.kinds.external import read_scores
from features.kinds.language_model import KenLM
from features.models.config import read_config
from features.models.folder import load_model
from features.models.training.metrics import read_epochs
from features.models.vocabulary import learn, load_vocabulary
from features.translation_table import read_table
from moses_io.alignment import read_alignments, segmentation, word_alignment
from moses_io.decoders import formats
from moses_io.extractor import read_blocks
from moses_io.files.errors import Fault, InputError
from moses_io.files.text import read_lines
from moses_io.gold import read_gold
from moses_io.nbest import read_nbest
from moses_io.weights import read_weights
from rerank.confidence.confidence import read_confidence
from rerank.experiment.file import read_experiment
from rerank.experiment.init.kinds import kind_of
from rerank.experiment.stages import run_stages
from rerank.experiment.studies.file import read_study
from rerank.moses.exchange import import_weights
from rerank.reranker.folder import read_candidates, read_features, read_manifest
from rerank.systems.attention import open_attention, read_attention
from rerank.tuning.ablation import read_ablation
from rerank.tuning.gain import read_gain

TESTS = Path(__file__).resolve().parent.parent / "tests"
CORPUS = TESTS / "corpus"
"""One folder per reader, with valid files and with files that once made the reader fail."""

MODEL = TESTS / "features" / "models" / "format2"
LENGTHS = ([3, 1], [2, 1])
KEYS = [bytes([number]) * 16 for number in range(3)]
MAX_BYTES = 1 << 16
"""Maximum size of most mutated files, in bytes. One in twenty of the longer files is not truncated."""

Read = Callable[[Path], object]
"""Function that reads a file, or the folder that contains it."""


def read_list(path: Path) -> None:
    """Read an n-best list, with the phrase segmentation and word alignment of each candidate."""
    for sentence_list in read_nbest(str(path)):
        for hypothesis in sentence_list.hypotheses:
            segmentation(hypothesis)
            try:
                word_alignment(hypothesis, 3, 3)
            except Fault as fault:
                raise InputError(str(fault)) from None


def read_foreign_list(path: Path) -> None:
    """Read an n-best list of another decoder, if its format is recognized."""
    if form := formats.recognize(str(path)):
        list(formats.read_candidates(str(path), form, ["a", "b"]))


def read_reranker(path: Path) -> None:
    """Read the manifest of a reranker folder, and the features and candidates that the manifest describes."""
    (path.parent / "tables").mkdir(exist_ok=True)
    (path.parent / "tables" / "lex").write_bytes(b"the der 0.5\n")
    (path.parent / "weights.ini").write_bytes(b"[weight]\nLM0= 1\n")
    manifest = read_manifest(path.parent)
    read_features(path.parent, manifest, {}, allow_code=False)
    read_candidates(path.parent, manifest)


def read_tuner_weights(path: Path) -> None:
    """Read the weights that a tuner of Moses wrote."""
    (path.parent / "init.dense").write_bytes(b"LM0= 1\nTM0= 1\nTM0= 2\n")
    import_weights(str(path.parent), str(path), str(path.parent / "out"))


def read_model(path: Path) -> None:
    """Read a model in which this file replaces the file of the same name."""
    for part in MODEL.iterdir():
        if part.name != path.name:
            shutil.copyfile(part, path.parent / part.name)
    import torch

    load_model(path.parent, torch.device("cpu"))


def read_subwords(path: Path) -> None:
    """Read a sentencepiece model with a vocabulary, and split words into subwords with it."""
    (path.parent / "source.vocabulary").write_bytes(b"zz\n")
    vocabulary = load_vocabulary(path.parent, "source", has_subwords=True)
    vocabulary.encode(["ab", "", "x\udc80"])


def read_all_attention(path: Path) -> None:
    """Read all matrices of an attention file."""
    attentions = read_attention(str(path))
    for key in attentions:
        attentions.get(key)


READERS: dict[str, tuple[str, Read]] = {
    "ablation": ("dev.ablation.json", lambda path: read_ablation({"dev": str(path)})),
    "alignment": ("aligned", lambda path: read_alignments(str(path), *LENGTHS)),
    "arpa": ("lm.arpa", lambda path: KenLM(str(path), Resources("cpu"))),
    "answer": ("weights.txt", read_tuner_weights),
    "attention": ("test.attention.npz", read_all_attention),
    "cache": (FILE, lambda path: Cache(str(path.parent)).get(KEYS)),
    "confidence": ("confidence.json", lambda path: read_confidence(str(path))),
    "config": ("config.json", lambda path: read_config(path.parent)),
    "decoders": ("list", read_foreign_list),
    "experiment": ("experiment.toml", lambda path: read_experiment(str(path))),
    "features": ("features.dat", lambda path: list(read_blocks(str(path), "FEATURES"))),
    "gain": ("tuning.json", lambda path: read_gain(str(path))),
    "gold": ("gold", lambda path: read_gold(str(path), 0)),
    "kind": ("file", lambda path: kind_of(str(path))),
    "lexical": ("lex.f2e", lambda path: read_table(str(path))),
    "list": ("nbest", read_list),
    "metrics": ("metrics.jsonl", lambda path: read_epochs(path.parent, ["epoch", "dev_perplexity"])),
    "reranker": ("reranker.json", read_reranker),
    "scores": ("scores", lambda path: read_scores(str(path))),
    "stages": ("stages.json", lambda path: run_stages([], path)),
    "statistics": ("scores.dat", lambda path: list(read_blocks(str(path), "SCORES"))),
    "study": ("study.toml", lambda path: read_study(str(path))),
    "subwords": ("source.bpe", read_subwords),
    "text": ("text", lambda path: read_lines(str(path))),
    "tensors": ("model.safetensors", read_model),
    "vocabulary": ("source.vocabulary", lambda path: load_vocabulary(path.parent, "source", has_subwords=False)),
    "weights": ("moses.ini", lambda path: read_weights(str(path))),
}
"""For each reader, the name of the file and the function that reads it.

The function must return or raise `InputError`. Any other exception is a fault.
"""


def valid_files(reader: str, folder: Path) -> list[bytes]:
    """Return the corpus files of a reader, valid ones and earlier faults. Binary formats are generated in `folder`."""
    name, _ = READERS[reader]
    contents = [path.read_bytes() for path in sorted((CORPUS / reader).glob("*"))]
    if reader == "subwords":
        contents.append(learn({"ab": 1, "ba": 1, "abab": 1}, 8).model)
    if reader in ("tensors", "config", "metrics"):
        contents.append((MODEL / name).read_bytes())
    if reader == "attention":
        import numpy as np

        with open_attention(str(folder / name), ["forward"], ["moses", "reranked"]) as write:
            write(12, "moses", [np.full((3, 2), 0.5, dtype=np.float32)])
        contents.append((folder / name).read_bytes())
    if reader == "cache":
        Cache(str(folder)).store({key: bytes(8) for key in KEYS})
        contents.append((folder / name).read_bytes())
    return contents


def attempt(reader: str, content: bytes, folder: Path) -> None:
    """Read this content, as the only file of an empty folder. An exception other than `InputError` is a fault."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    name, read = READERS[reader]
    (folder / name).write_bytes(content)
    try:
        read(folder / name)
    except InputError:
        return


NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
NUMBERS = (b"1e999", b"nan", b"NaN", b"-Infinity", b"-1", b"0", b"1" + b"0" * 18, b"9" * 5000, b"0x10", b"1.5", b'""')
PARTS = (
    b"\0", b"\xff", b"\n", b"\r\n", b"\xe2\x80\xa8", b" ||| ", b"=", b":", b"\x1b[31m", b"\xef\xbb\xbf", b"../x",
    b"[" * 3000, b"{}", b"null", b'"', b"true", b" ", b"\t", b"0-0", b"_", b"#", b"\x1f\x8b", b"PK\x03\x04", b"]", b",",
)  # fmt: skip


def mutate(contents: Sequence[bytes], rng: random.Random) -> bytes:
    """Return one of the contents, picked at random, with one to four random mutations."""
    content = rng.choice(contents)
    for _ in range(rng.randint(1, 4)):
        content = rng.choices(MUTATIONS, WEIGHTS)[0](content, rng)
        if rng.random() < 0.02:
            content += rng.choice(contents)
    return content if len(content) <= MAX_BYTES or rng.random() < 0.05 else content[:MAX_BYTES]


def _position(content: bytes, rng: random.Random) -> int:
    return rng.randrange(len(content) + 1)


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: _position(content, rng)]


def _flip_bit(content: bytes, rng: random.Random) -> bytes:
    position = _position(content, rng)
    return (
        content[:position]
        + bytes(byte ^ 1 << rng.randrange(8) for byte in content[position : position + 1])
        + content[position + 1 :]
    )


def _insert(content: bytes, rng: random.Random) -> bytes:
    position, size = _position(content, rng), rng.choice((0, 0, 1, 4))
    return content[:position] + rng.choice(PARTS) + content[position + size :]


def _edit_lines(content: bytes, rng: random.Random) -> bytes:
    """Duplicate a line, delete a line or swap two lines."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    position, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(3):
        case 0:
            lines.insert(position, lines[position])
        case 1:
            del lines[position]
        case _:
            lines[position], lines[other] = lines[other], lines[position]
    return b"".join(lines)


def _replace_number(content: bytes, rng: random.Random) -> bytes:
    """Replace a number with an extreme or malformed value."""
    found = list(NUMBER.finditer(content[:MAX_BYTES]))
    if not found:
        return content
    match = rng.choice(found)
    return content[: match.start()] + rng.choice(NUMBERS) + content[match.end() :]


def _replace_value(content: bytes, rng: random.Random) -> bytes:
    """Replace a JSON or TOML value with another value, constant or from the same content."""
    values = list(re.finditer(rb'"[^"\n]*"|\[[^][]*\]|\{[^{}]*\}|true|false|null|-?[0-9.]+', content[:MAX_BYTES]))
    if not values:
        return content
    match, other = rng.choice(values), rng.choice(values)
    value = rng.choice((other[0], b"null", b"[]", b"{}", b'"x"', b"true", b"-3", b"[[1]]", b'{"a": 1}'))
    return content[: match.start()] + value + content[match.end() :]


def _lengthen(content: bytes, rng: random.Random) -> bytes:
    position = _position(content, rng)
    inserted = rng.choice((b"9", b"a", b" ", b"a ", b"[", b"\n", b"|")) * 1_000_000
    return content[:position] + inserted + content[position:]


def _compress(content: bytes, rng: random.Random) -> bytes:
    compressed = gzip.compress(content, 1)
    return compressed[: rng.choice((len(compressed), _position(compressed, rng)))]


MUTATIONS: tuple[Callable[[bytes, random.Random], Any], ...] = (
    _truncate, _flip_bit, _insert, _edit_lines, _replace_number, _replace_value, _lengthen, _compress,
)  # fmt: skip
WEIGHTS = (10, 30, 20, 15, 25, 20, 1, 2)
