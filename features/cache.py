"""Values that models gave before: a cache kept between runs, and the journal of a list that is not finished."""

import hashlib
import io
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from features.arrays import Array
from features.groups import Group
from moses_io.files.errors import InputError
from moses_io.files.folders import make_folder
from moses_io.files.text import encode

FILE = "scores.sqlite"
AT_ONCE = 900
"""Keys of a query; SQLite takes 999 in its oldest versions."""
CHECK = 4
"""Bytes behind each value by which a change of it, or of its key, is seen."""


class Cache:
    """A folder with values by keys, bit for bit as they were given. Several processes may use one.

    Raises:
        InputError: the folder cannot be made, or holds a file of that name that is none of ours.
    """

    def __init__(self, folder: str) -> None:
        self._path = Path(folder) / FILE
        make_folder(Path(folder))
        with self._database() as database:
            database.execute("CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of those keys that are known; one that is not as it was kept is not."""
        known: dict[bytes, bytes] = {}
        with self._database() as database:
            for start in range(0, len(keys), AT_ONCE):
                part = keys[start : start + AT_ONCE]
                places = ",".join("?" * len(part))
                rows = database.execute(f"SELECT key, value FROM scores WHERE key IN ({places})", part)
                known.update((key, value[:-CHECK]) for key, value in rows if _is_whole(key, value))
        return known

    def keep(self, values: Mapping[bytes, bytes]) -> None:
        """Write values down by their keys."""
        with self._database() as database:
            rows = ((key, value + _check(key, value)) for key, value in values.items())
            database.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", rows)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Open the database for one transaction."""
        try:
            database = sqlite3.connect(self._path, timeout=60)
            try:
                with database:
                    yield database
            finally:
                database.close()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of what a message quotes of the file
            raise InputError(f"{self._path}: not a usable cache of scores ({error})") from None


def _check(key: bytes, value: bytes) -> bytes:
    return zlib.crc32(key + value).to_bytes(CHECK, "big")


def _is_whole(key: bytes, value: Any) -> bool:
    """Tell whether a value is one that was kept by this key; a database may hold anything."""
    return isinstance(value, bytes) and value[-CHECK:] == _check(key, value[:-CHECK])


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
