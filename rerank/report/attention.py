"""What models attended to while they read the choices of a set, and the file that keeps it."""

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from features.arrays import AttentionRows
from moses_io.errors import InputError, shown
from moses_io.streams import check_plain, open_output
from moses_io.text import whole


class Attention(NamedTuple):
    """What one model attended to while it read one target sentence."""

    model: str  # as the experiment names it
    weights: AttentionRows  # (J, I) of target words on source words; a row sums to 1 at most


Attentions = Mapping[tuple[int, str], Sequence[Attention]]
"""Of a sentence by its id and of a system by its name, what each model attended to; one without models is missing."""

Write = Callable[[int, str, Sequence[AttentionRows]], None]
"""Writes the matrices (J, I) of all models for a sentence and a system; those of a sentence stand together."""

UNIT = 1000
"""Attention of 1 in the file."""

MOST_BYTES = 2**28
"""Of an array: what is packed in a small file must not fill the memory."""


@contextmanager
def open_attention(path: str, models: Sequence[str], systems: Sequence[str]) -> Iterator[Write]:
    """Open a file of attention, which appears whole or not, and give what writes one sentence after the other.

    It is what `numpy.load` reads: `models` and `systems`, their names (M,) and (systems,), and `12.moses`, whole
    numbers (M, J, I), for sentence 12 and the system `moses`, in thousandths. A system without an array chose what the
    first one did. The same attention makes the same bytes.

    Raises:
        InputError: the file cannot be written.
    """
    with open_output(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        _add(archive, "models", np.array(models))
        _add(archive, "systems", np.array(systems))

        def write(sentence: int, system: str, matrices: Sequence[AttentionRows]) -> None:
            thousandths = np.rint(np.stack(matrices) * UNIT).astype(np.uint16)  # (M, J, I)
            _add(archive, f"{sentence}.{system}", thousandths)

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

    def __getitem__(self, key: tuple[int, str]) -> Sequence[Attention]:
        sentence, system = key
        names = [f"{sentence}.{each}" for each in (system, self._systems[0]) if system in self._systems]
        for name in names:
            if f"{name}.npy" in self._arrays:
                matrices = self._array(name, 3)  # (M, J, I)
                if len(matrices) != len(self._models) or matrices.dtype != np.uint16:
                    raise InputError(f"{self._path}: {shown(name)} is no attention of {len(self._models)} models")
                weights = matrices.astype(np.float32) / UNIT  # (M, J, I)
                return [Attention(*pair) for pair in zip(self._models, weights, strict=True)]
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


def _add(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    entry = zipfile.ZipInfo(f"{name}.npy")
    entry.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(entry, "w") as stream:
        np.lib.format.write_array(stream, array, allow_pickle=False)
