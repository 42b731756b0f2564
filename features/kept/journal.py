"""What models have said of a list that is still being scored, so that a killed scoring goes on where it was."""

import hashlib
import io
from collections.abc import Mapping

import numpy as np

from features.arrays import Array
from features.groups import Group
from features.kept.cache import Cache
from moses_io.text import encode


class Journal:
    """A folder with the values of features, by what they were made of: their signatures and a group of sentences.

    A list that is read again is cut into the same groups, so the values are those that a whole scoring gives, bit for
    bit. It may be removed at any time.

    Raises:
        InputError: the folder cannot be made, or holds something else.
    """

    def __init__(self, folder: str, signatures: Mapping[str, str]) -> None:
        self._cache, self._labels = Cache(folder), list(signatures)
        self._start = "\n".join(signatures.values())

    def values(self, group: Group) -> dict[str, Array] | None:
        """Return (candidates of the group, values) by label, or None if it was not read yet."""
        packed = self._cache.look_up([self._key(group)])
        if not packed:
            return None
        with np.load(io.BytesIO(*packed.values()), allow_pickle=False) as arrays:
            return dict(zip(self._labels, arrays.values(), strict=True))

    def keep(self, group: Group, values: Mapping[str, Array]) -> None:
        """Write down (candidates of the group, values) by label."""
        buffer = io.BytesIO()
        np.savez(buffer, *(values[label] for label in self._labels))
        self._cache.keep({self._key(group): buffer.getvalue()})

    def _key(self, group: Group) -> bytes:
        key = hashlib.blake2b(encode(self._start), digest_size=16)
        for sentence in group.sentences:
            key.update(encode(f"\n\n{sentence.sentence} {' '.join(sentence.source)}\n"))
            key.update(encode("\n".join(map(" ".join, sentence.hypotheses))))
            key.update(b"".join(line.line for line in sentence.lines))
            key.update(encode(f"\n{sentence.counts_marks}"))
        return key.digest()
