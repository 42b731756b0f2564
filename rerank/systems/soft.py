"""Files of soft alignments: a matrix of attention for each sentence pair."""

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO

import numpy as np

from features.arrays import AttentionRows
from features.models.scoring.alone import SentencePair
from moses_io.errors import InputError, shown
from moses_io.streams import open_output
from moses_io.text import encode

Write = Callable[[SentencePair, AttentionRows], None]
"""Writes the matrix (J, I) of the next sentence pair."""

DIGITS = 6
"""Decimals of attention in JSON."""


@contextmanager
def open_soft(path: str) -> Iterator[Write]:
    """Open a file, which appears whole or not, and give what writes one matrix after the other.

    `.npz`: arrays of float32 (J, I), as `numpy.load` takes them, by the number of the pair from 0. `.json`, or packed:
    a list of objects with the words `source` (I) and `target` (J) and the rows `attention` (J, I), six decimals.

    Raises:
        InputError: a name with another ending, or a file that cannot be written.
    """
    form = form_of(path)
    with open_output(path) as stream, form(stream) as write:
        yield write


def form_of(path: str) -> Callable[[BinaryIO], AbstractContextManager[Write]]:
    """Return what writes files of a name, or raise an `InputError`."""
    if path.endswith(".npz"):
        return _npz
    if re.search(r"\.json(\.gz|\.bz2|\.xz)?$", path):
        return _json
    raise InputError(f"--soft {shown(path)}: expected a name in .npz, .json or .json.gz")


@contextmanager
def _npz(stream: BinaryIO) -> Iterator[Write]:
    count = 0
    with zipfile.ZipFile(stream, "w") as archive:

        def write(pair: SentencePair, attention: AttentionRows) -> None:
            nonlocal count
            with archive.open(zipfile.ZipInfo(f"{count}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(attention), allow_pickle=False)
            count += 1

        yield write


@contextmanager
def _json(stream: BinaryIO) -> Iterator[Write]:
    start = "[\n"

    def write(pair: SentencePair, attention: AttentionRows) -> None:
        nonlocal start
        rows = [[round(weight, DIGITS) for weight in row] for row in attention.tolist()]
        line = json.dumps({"source": pair[0], "target": pair[1], "attention": rows})
        stream.write(encode(start + line))
        start = ",\n"

    yield write
    stream.write(encode("[]\n" if start == "[\n" else "\n]\n"))
