"""Back-translation: a backward model translates monolingual text of the target language (Sennrich et al. 2016)."""

import hashlib
import json
import os
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from features.feature import Resources
from features.models.decoding.search import Beam
from features.models.decoding.translator import COPY, Replacement, Translator
from features.monolingual import MonolingualText
from features.progress import progress_bar
from moses_io.files.streams import hidden, open_output, sha256
from moses_io.files.text import ParallelFiles, encode

BLOCK = 2048
"""Sentences after whose translation an interrupted back-translation can continue."""

_BEGUN = ".begun"
"""End of the name of the hidden file with the translations so far."""


def back_translate(model: str, text: MonolingualText, output: ParallelFiles, resources: Resources) -> None:
    """Write sentences of a text, and their translations by a backward model, found by greedy search.

    If this is interrupted, a second call continues after the last block and writes the same files.

    Args:
        model: folder of the backward model.
        text: the sentences.
        output: files to write. The source has the translations.
        resources: device and precision of the model.

    Raises:
        InputError: the model is not a backward model, or the text has no usable sentence.
    """
    translator = Translator([model], Beam(1), Replacement(COPY, backward=True), resources, backward=True)
    sentences = text.sentences()
    path = Path(output.source)
    begun = path.with_name(f"{hidden(path.name)}{_BEGUN}")
    with open(os.open(begun, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as stream:
        done = _continue(stream, _identity(translator, text))
        with progress_bar("back-translate", len(sentences), done, whole=True) as bar:
            for start in range(done, len(sentences), BLOCK):
                block = sentences[start : start + BLOCK]
                for translations in translator.translate(block, lambda count: bar.advance(count, "")):
                    stream.write(encode(f"{' '.join(translations[0].tokens)}\n"))
                stream.flush()
        stream.seek(0)
        with open_output(output.source) as source, open_output(output.target) as target:
            source.writelines(islice(stream, 1, None))
            target.writelines(encode(f"{' '.join(sentence)}\n") for sentence in sentences)
    begun.unlink()


def _identity(translator: Translator, text: MonolingualText) -> bytes:
    """Return a line that identifies the translations: a digest of model, text and settings."""
    files = [sha256(Path(path)) for path in (text.path, *text.excluded)]
    values = [translator.signature, files, {**asdict(text), "path": "", "excluded": ""}, BLOCK]
    return f"{hashlib.sha256(json.dumps(values).encode()).hexdigest()}\n".encode()


def _continue(stream: BinaryIO, identity: bytes) -> int:
    """Remove everything behind the last whole block of an earlier call. Return the number of translations so far.

    If the earlier call had another identity, nothing is kept.
    """
    if stream.readline() != identity:
        stream.seek(0)
        stream.truncate()
        stream.write(identity)
    kept, place = 0, stream.tell()
    for number, line in enumerate(iter(stream.readline, b""), start=1):
        if number % BLOCK == 0 and line.endswith(b"\n"):
            kept, place = number, stream.tell()
    stream.seek(place)
    stream.truncate()
    return kept
