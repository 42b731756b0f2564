"""Which sentences of dev a model has learned from, and which of its weights have not seen them.

A model whose training ended on dev (setting `adapt`) has its weights several times in its folder: `model.safetensors`
learned from all of dev, `fold-N.safetensors` from all but fold N of it, and `dev.folds` says where a sentence belongs.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from features.models.config import WEIGHTS
from moses_io.errors import InputError
from moses_io.streams import open_output
from moses_io.text import encode, read_lines

FOLDS = 5
RECORD = "dev.folds"
_DIGEST = re.compile("[0-9a-f]{16}")


@dataclass(frozen=True)
class DevFolds:
    """The source sentences of dev, in folds that are numbered from 1; each sentence is in one, however often it stands.

    Attributes:
        places: the fold of each sentence by its digest.
    """

    places: dict[str, int]

    @classmethod
    def divide(cls, sources: Iterable[Sequence[str]]) -> "DevFolds":
        """Divide sentences, given by their tokens, into folds of one size: by their digests, as if at random."""
        return cls._of(sorted({_digest(source) for source in sources}))

    @classmethod
    def read(cls, folder: Path) -> "DevFolds":
        """Read the folds of a model; one that did not learn from dev, or whose folds were left behind, has none.

        Raises:
            InputError: the file is not as `write` writes it.
        """
        path = folder / RECORD
        digests = read_lines(str(path)) if path.exists() else []
        for number, line in enumerate(digests, start=1):
            if not _DIGEST.fullmatch(line):
                raise InputError(f"{path}:{number}: expected 16 hexadecimal digits, the digest of a sentence")
        return cls._of(digests)

    @classmethod
    def _of(cls, digests: Sequence[str]) -> "DevFolds":
        return cls({digest: place % FOLDS + 1 for place, digest in enumerate(digests)})

    def write(self, folder: Path) -> None:
        """Write the digests, a line each."""
        with open_output(str(folder / RECORD)) as stream:
            stream.writelines(encode(f"{digest}\n") for digest in self.places)

    def of(self, source: Sequence[str]) -> int:
        """Return the fold of a source sentence; 0 for one that is not in dev."""
        return self.places.get(_digest(source), 0) if self.places else 0

    @property
    def numbers(self) -> range:
        """The folds that there are: of fewer sentences than `FOLDS`, as many."""
        return range(1, min(FOLDS, len(self.places)) + 1)


def weights_without(fold: int) -> str:
    """Return the name of the weights that have not seen a fold; of 0, of those for all other sentences."""
    return f"fold-{fold}.safetensors" if fold else WEIGHTS


FOLD_FILES = (RECORD, *(weights_without(fold) for fold in range(1, FOLDS + 1)))
"""What stands in the folder of a model that has learned from dev, for the sentences of dev alone."""


def _digest(source: Sequence[str]) -> str:
    return hashlib.blake2b(encode(" ".join(source)), digest_size=8).hexdigest()
