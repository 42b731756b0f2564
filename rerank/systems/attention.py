"""Attention of models on sentence pairs: on the choices of systems for the report, and as soft alignments."""

import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from features.arrays import AttentionRows
from features.progress import progress_bar
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import check_plain, open_output
from moses_io.files.text import encode, read_texts, tokens, whole

if TYPE_CHECKING:
    from features.models.scoring.pairs import SentencePair

MAX_PAIRS = 4096
"""Maximum number of sentence pairs in memory at a time."""
MAX_VALUES = 2**25
"""Maximum number of values in their matrices, except for a single pair with more."""

Attentions = Mapping[tuple[int, str], Mapping[str, AttentionRows]]
"""Attention by sentence id and system name, then by model name.

It is a matrix (J, I) of target words on source words, whose rows sum to at most 1. A sentence or system that no model
has scored is missing.
"""

UNIT = 1000
"""Value in the file for an attention weight of 1."""

MAX_BYTES = 2**28
"""Maximum size of a decompressed array, so that a small compressed file cannot fill the memory."""


def attend(models: Mapping[str, str], source: str, systems: Mapping[str, str], device: str, output: str) -> None:
    """Compute the attention of each model alone on the choices of the systems, and write it to a file.

    Args:
        models: folders, by the names that the report shows. All models need attention.
        source: source text.
        systems: translations by system name, one line per sentence. A translation that equals the one of the first
            system is skipped.
        device: `auto`, `cpu` or `cuda`.
        output: file to write, see `open_attention`.

    Raises:
        InputError: see `Aligner` and `Aligner.align`.
    """
    from features.models.alignment import Aligner  # this imports torch

    aligners = [Aligner([folder], device) for folder in models.values()]
    sources, texts = read_texts(source, list(systems.values()))
    keys, pairs = [], []
    for sentence, (words, *choices) in enumerate(zip(sources, *texts, strict=True)):
        for system, choice in zip(systems, choices, strict=True):
            if system == next(iter(systems)) or choice != choices[0]:
                keys.append((sentence, system))
                pairs.append((tuple(tokens(words)), tuple(tokens(choice))))
    written = iter(keys)
    with (
        open_attention(output, list(models), list(systems)) as write,
        progress_bar("attend", len(pairs), whole=True) as bar,
    ):
        for batch in batched(pairs):
            by_model = [[aligned.attention for aligned in aligner.align(batch)] for aligner in aligners]
            for matrices, key in zip(zip(*by_model, strict=True), written, strict=False):
                write(*key, matrices)
            bar.advance(len(batch), "choices")


def batched(pairs: Iterable["SentencePair"]) -> Iterator[list["SentencePair"]]:
    """Cut sentence pairs into lists that fit in memory together with their matrices."""
    batch: list[SentencePair] = []
    cells = 0
    for pair in pairs:
        size = (len(pair[0]) + 2) * len(pair[1])
        if batch and (len(batch) == MAX_PAIRS or cells + size > MAX_VALUES):
            yield batch
            batch, cells = [], 0
        batch.append(pair)
        cells += size
    if batch:
        yield batch


@contextmanager
def open_attention(
    path: str, models: Sequence[str], systems: Sequence[str]
) -> Iterator[Callable[[int, str, Sequence[AttentionRows]], None]]:
    """Open a file of attention and yield a function that writes a sentence.

    The function takes a sentence id, a system name, and the matrices (J, I) of all models. The file appears only when
    it is complete. Equal attention gives equal bytes.

    `numpy.load` can read the file:

    * `models` (M,) and `systems` (systems,): names.
    * `12.moses` (M, J, I): attention for sentence 12 and the system `moses`, as integers in thousandths. A system
      without an array chose the translation of the first system.

    Raises:
        InputError: the file cannot be written.
    """
    with open_output(path) as stream, zipfile.ZipFile(stream, "w") as archive:

        def add(name: str, array: NDArray[Any]) -> None:
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)

        def write(sentence: int, system: str, matrices: Sequence[AttentionRows]) -> None:
            add(f"{sentence}.{system}", np.rint(np.stack(matrices) * UNIT).astype(np.uint16))  # (M, J, I)

        add("models", np.array(models))
        add("systems", np.array(systems))
        yield write


def read_attention(path: str) -> Attentions:
    """Read a file of attention, exact to 5e-4.

    The content stays compressed in memory and is decompressed sentence by sentence. A sentence or system that is not in
    the file has no attention.

    Raises:
        InputError: the file is of another kind, or is damaged. A damaged array raises it when it is accessed.
    """
    check_plain(path)
    return _Attentions(path)


class _Attentions(Attentions):
    def __init__(self, path: str) -> None:
        self._path, content = path, Path(path).read_bytes()
        with self._faults():
            self._archive = zipfile.ZipFile(BytesIO(content))
        self._models, self._systems = ([str(name) for name in self._array(key, 1)] for key in ("models", "systems"))
        if not self._systems:
            raise InputError(f"{path}: attention of no system")
        self._arrays = set(self._archive.namelist())

    def __getitem__(self, key: tuple[int, str]) -> Mapping[str, AttentionRows]:
        sentence, system = key
        # A system without its own array chose the translation of the first system.
        names = [f"{sentence}.{each}" for each in (system, self._systems[0]) if system in self._systems]
        for name in names:
            if f"{name}.npy" in self._arrays:
                matrices = self._array(name, 3)  # (M, J, I)
                if len(matrices) != len(self._models) or matrices.dtype != np.uint16:
                    raise InputError(f"{self._path}: {shown(name)} is no attention of {len(self._models)} models")
                return dict(zip(self._models, matrices.astype(np.float32) / UNIT, strict=True))  # each (J, I)
        raise KeyError(key)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        ending = f".{self._systems[0]}.npy"
        numbers = [whole(name.removesuffix(ending)) for name in self._archive.namelist() if name.endswith(ending)]
        return ((number, system) for number in numbers if number is not None for system in self._systems)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _array(self, name: str, axes: int) -> NDArray[Any]:
        with self._faults():
            size = self._archive.getinfo(f"{name}.npy").file_size
            if size > MAX_BYTES:
                raise ValueError(f"{shown(name)} of {size} bytes")
            with self._archive.open(f"{name}.npy") as entry:
                array: NDArray[Any] = np.lib.format.read_array(entry, allow_pickle=False)
        if array.ndim != axes:
            raise InputError(f"{self._path}: {shown(name)} has {array.ndim} axes, expected {axes}")
        return array

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # zipfile and numpy raise about fifteen kinds of exceptions
            raise InputError(f"{self._path}: damaged, or no file of attention ({shown(str(error))})") from None


WritePair = Callable[["SentencePair", AttentionRows], None]
"""Function that writes the matrix (J, I) of the next sentence pair."""

DIGITS = 6
"""Decimals of attention in JSON."""


@contextmanager
def open_soft(path: str) -> Iterator[WritePair]:
    """Open a file of soft alignments and yield a function that writes the matrix of the next pair.

    The file appears only when it is complete. Its format depends on the ending of its name:

    * `.npz`: arrays (J, I) of float32, named by the number of the pair from 0. `numpy.load` can read it.
    * `.json`, optionally compressed (`.gz`, `.bz2`, `.xz`): a list of objects with the words `source` (I) and `target`
      (J), and the rows `attention` (J, I) with six decimals.

    Raises:
        InputError: the name has another ending, or the file cannot be written.
    """
    writer = soft_format(path)
    with open_output(path) as stream, writer(stream) as write:
        yield write


def soft_format(path: str) -> Callable[[BinaryIO], AbstractContextManager[WritePair]]:
    """Return the function that opens a writer for the ending of a path. Raise `InputError` for an unknown ending."""
    if path.endswith(".npz"):
        return _npz
    if re.search(r"\.json(\.gz|\.bz2|\.xz)?$", path):
        return _json
    raise InputError(f"--soft {shown(path)}: expected a name in .npz, .json or .json.gz")


@contextmanager
def _npz(stream: BinaryIO) -> Iterator[WritePair]:
    count = 0
    with zipfile.ZipFile(stream, "w") as archive:

        def write(pair: "SentencePair", attention: AttentionRows) -> None:
            nonlocal count
            # A `ZipInfo` has a fixed date, so equal arrays give equal bytes.
            with archive.open(zipfile.ZipInfo(f"{count}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(attention), allow_pickle=False)
            count += 1

        yield write


@contextmanager
def _json(stream: BinaryIO) -> Iterator[WritePair]:
    start = "[\n"

    def write(pair: "SentencePair", attention: AttentionRows) -> None:
        nonlocal start
        rows = [[round(weight, DIGITS) for weight in row] for row in attention.tolist()]
        line = json.dumps({"source": pair[0], "target": pair[1], "attention": rows})
        stream.write(encode(start + line))
        start = ",\n"

    yield write
    stream.write(encode("[]\n" if start == "[\n" else "\n]\n"))
