"""Attention of models on sentence pairs: what they attend to in the choices of systems, and the files that keep it."""

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
    from features.models.scoring.alone import SentencePair

STRETCH = 4096
"""Sentence pairs that are held at a time, at most."""
CELLS = 2**25
"""Numbers of their matrices, at most, unless a single pair has more."""

Attentions = Mapping[tuple[int, str], Mapping[str, AttentionRows]]
"""By the id of a sentence and the name of a system, the attention of each model by its name: a matrix (J, I) of target
words on source words, of which a row sums to 1 at most. A sentence or a system that no model read is missing."""

UNIT = 1000
"""Attention of 1 in the file of the choices."""

MOST_BYTES = 2**28
"""Of an array: what is packed in a small file must not fill the memory."""


def attend(models: Mapping[str, str], source: str, systems: Mapping[str, str], device: str, output: str) -> None:
    """Align each sentence with what the systems chose, by each model alone, and keep the attention.

    Args:
        models: folders by the names that the report shows, all of models with attention.
        source: text.
        systems: translations by the name of the system, a line a sentence; one that is that of the first system is not
            read again.
        device: `auto`, `cpu` or `cuda`.
        output: file to write; see `open_attention`.

    Raises:
        InputError: see `Aligner` and `Aligner.align`.
    """
    from features.models.alignment import Aligner  # torch comes in here

    aligners = [Aligner([folder], device) for folder in models.values()]
    sources, texts = read_texts(source, list(systems.values()))
    places, pairs = [], []
    for sentence, (words, *choices) in enumerate(zip(sources, *texts, strict=True)):
        for system, choice in zip(systems, choices, strict=True):
            if system == next(iter(systems)) or choice != choices[0]:
                places.append((sentence, system))
                pairs.append((tuple(tokens(words)), tuple(tokens(choice))))
    written = iter(places)
    with open_attention(output, list(models), list(systems)) as write, progress_bar("attend", len(pairs)) as bar:
        for stretch in stretches(pairs):
            by_model = [[aligned.attention for aligned in aligner.align(stretch)] for aligner in aligners]
            for matrices, place in zip(zip(*by_model, strict=True), written, strict=False):
                write(*place, matrices)
            bar.advance(len(stretch), "choices")


def stretches(pairs: Iterable["SentencePair"]) -> Iterator[list["SentencePair"]]:
    """Cut pairs into lists that the memory holds together with their matrices."""
    stretch: list[SentencePair] = []
    cells = 0
    for pair in pairs:
        own = (len(pair[0]) + 2) * len(pair[1])
        if stretch and (len(stretch) == STRETCH or cells + own > CELLS):
            yield stretch
            stretch, cells = [], 0
        stretch.append(pair)
        cells += own
    if stretch:
        yield stretch


@contextmanager
def open_attention(
    path: str, models: Sequence[str], systems: Sequence[str]
) -> Iterator[Callable[[int, str, Sequence[AttentionRows]], None]]:
    """Open a file of attention, which appears whole or not, and give what writes one sentence after the other.

    What is given takes a sentence, a system, and the matrices (J, I) of all models; those of a sentence stand together.
    The file is what `numpy.load` reads: `models` and `systems`, their names (M,) and (systems,), and `12.moses`, whole
    numbers (M, J, I), for sentence 12 and the system `moses`, in thousandths. A system without an array chose what the
    first one did. The same attention makes the same bytes.

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
    """Return what a file of attention holds, within 5e-4; it is held packed, and unpacked sentence by sentence.

    A sentence or a system that it does not know has no attention.

    Raises:
        InputError: it is something else, or damaged; of an array, when it is asked for.
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
            if size > MOST_BYTES:
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
        except Exception as error:  # zipfile and numpy raise some fifteen kinds for what is damaged
            raise InputError(f"{self._path}: damaged, or no file of attention ({shown(str(error))})") from None


WritePair = Callable[["SentencePair", AttentionRows], None]
"""Writes the matrix (J, I) of the next sentence pair."""

DIGITS = 6
"""Decimals of attention in JSON."""


@contextmanager
def open_soft(path: str) -> Iterator[WritePair]:
    """Open a file of soft alignments, which appears whole or not, and give what writes one matrix after the other.

    `.npz`: arrays of float32 (J, I), as `numpy.load` takes them, by the number of the pair from 0. `.json`, or packed:
    a list of objects with the words `source` (I) and `target` (J) and the rows `attention` (J, I), six decimals.

    Raises:
        InputError: a name with another ending, or a file that cannot be written.
    """
    form = soft_form(path)
    with open_output(path) as stream, form(stream) as write:
        yield write


def soft_form(path: str) -> Callable[[BinaryIO], AbstractContextManager[WritePair]]:
    """Return what writes files of a name, or raise an `InputError`."""
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
