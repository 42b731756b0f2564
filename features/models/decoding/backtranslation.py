"""Back-translation: a backward model translates text of the target language (Sennrich et al. 2016)."""

import hashlib
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from features.feature import Resources
from features.models.decoding.search import Beam
from features.models.decoding.translator import COPY, Replacement, Translator
from features.progress import progress_bar
from moses_io.files.streams import hidden, open_output, sha256
from moses_io.files.text import encode, input_lines, tokens

BLOCK = 2048
"""Sentences after whose translation an interrupted back-translation can continue."""

_BEGUN = ".begun"
"""End of the name of the hidden file with the translations so far."""


def back_translate(model: str, text: str, output: str, resources: Resources) -> None:
    """Write the translation of each line of a text by a backward model, found by greedy search.

    If this is interrupted, a second call continues after the last block and writes the same file.

    Args:
        model: folder of the backward model.
        text: path of the text, one tokenized sentence per line.
        output: path of the file to write.
        resources: device and precision of the model.

    Raises:
        InputError: the model is not a backward model, or the text cannot be read.
    """
    translator = Translator([model], Beam(1), Replacement(COPY, backward=True), resources, backward=True)
    path, total = Path(output), sum(1 for _ in input_lines(text))
    begun = path.with_name(f"{hidden(path.name)}{_BEGUN}")
    identity = hashlib.sha256(f"{translator.signature} {sha256(Path(text))} {BLOCK}".encode()).hexdigest()
    with open(os.open(begun, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as stream:
        done = _continue(stream, f"{identity}\n".encode())
        sentences = (tuple(tokens(line)) for line in islice(input_lines(text), done, None))
        with progress_bar("back-translate", total, done, whole=True) as bar:
            for block in _blocks(sentences):
                for translations in translator.translate(block, lambda count: bar.advance(count, "")):
                    stream.write(encode(f"{' '.join(translations[0].tokens)}\n"))
                stream.flush()
        stream.seek(0)
        with open_output(output) as whole:
            whole.writelines(islice(stream, 1, None))
    begun.unlink()


def _blocks(sentences: Iterator[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """Yield the sentences in lists of `BLOCK`."""
    while block := list(islice(sentences, BLOCK)):
        yield block


def _continue(stream: BinaryIO, identity: bytes) -> int:
    """Remove everything after the last complete block of an earlier call. Return the number of translations so far.

    The first line of the file is the identity of the call. If it differs, the whole file is discarded.
    """
    if stream.readline() != identity:
        stream.seek(0)
        stream.truncate()
        stream.write(identity)
    count, offset = 0, stream.tell()
    for number, line in enumerate(iter(stream.readline, b""), start=1):
        if number % BLOCK == 0 and line.endswith(b"\n"):
            count, offset = number, stream.tell()
    stream.seek(offset)
    stream.truncate()
    return count
