"""Which sentences of dev a model has learned from, and which of its weights have not seen them.

A model whose training ended on dev (setting `adapt`) has its weights several times in its folder: `model.safetensors`
learned from all of dev, `fold-N.safetensors` from all but fold N of it, and `dev.folds` says where a sentence belongs.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from features.models.config import WEIGHTS
from moses_io.errors import InputError
from moses_io.streams import check_plain, open_output
from moses_io.text import encode, read_lines

DEV_FOLDS = 5
RECORD = "dev.folds"
_LINE = re.compile(r"([1-5]) ([0-9a-f]{16})")


@dataclass(frozen=True)
class DevFolds:
    """The source sentences of dev, in folds that are numbered from 1; each sentence is in one, however often it stands.

    Attributes:
        folds: of each sentence by its digest.
    """

    folds: dict[str, int]

    @classmethod
    def divide(cls, sources: Iterable[Sequence[str]]) -> "DevFolds":
        """Divide sentences, given by their tokens, into folds of one size: by their digests, as if at random."""
        digests = sorted({_digest(source) for source in sources})
        return cls({digest: place % DEV_FOLDS + 1 for place, digest in enumerate(digests)})

    @classmethod
    def read(cls, folder: Path) -> "DevFolds":
        """Read the folds of a model; one that did not learn from dev has none.

        Raises:
            InputError: the file is not as `write` writes it.
        """
        path, folds = folder / RECORD, dict[str, int]()
        if os.path.lexists(path):
            check_plain(path)
            for number, line in enumerate(read_lines(str(path)), start=1):
                match = _LINE.fullmatch(line)
                if not match or match[2] in folds:
                    fault = (
                        "a sentence that stands there twice" if match else "expected a fold and 16 hexadecimal digits"
                    )
                    raise InputError(f"{path}:{number}: {fault}")
                folds[match[2]] = int(match[1])
        return cls(folds)

    def write(self, folder: Path) -> None:
        """Write a line for each sentence: its fold and its digest."""
        with open_output(str(folder / RECORD)) as stream:
            stream.writelines(encode(f"{fold} {digest}\n") for digest, fold in self.folds.items())

    def fold_of(self, source: Sequence[str]) -> int:
        """Return the fold of a source sentence; 0 for one that is not in dev."""
        return self.folds.get(_digest(source), 0) if self.folds else 0

    @property
    def numbers(self) -> list[int]:
        """The folds that there are: of fewer sentences than `DEV_FOLDS`, as many."""
        return sorted(set(self.folds.values()))


def weights_file(fold: int) -> str:
    """Return the name of the weights that have not seen a fold; of 0, of those for all sentences that are in none."""
    return f"fold-{fold}.safetensors" if fold else WEIGHTS


FOLD_WEIGHTS = tuple(weights_file(fold) for fold in range(1, DEV_FOLDS + 1))
"""What stands in the folder of a model that has learned from dev, for the sentences of dev alone."""


def _digest(source: Sequence[str]) -> str:
    return hashlib.blake2b(encode(" ".join(source)), digest_size=8).hexdigest()
