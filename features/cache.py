"""Cached values of models: a cache shared by runs, and the journal of a list that is partly scored."""

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
"""Maximum keys in one query. The oldest versions of SQLite accept 999."""
CHECK = 4
"""Bytes of the checksum after each value, which detects a damaged value or key."""


class Cache:
    """A folder with values by key, stored bit for bit. Several processes may use it at the same time.

    Raises:
        InputError: the folder cannot be created, or its `scores.sqlite` is not a usable database.
    """

    def __init__(self, folder: str) -> None:
        self._path = Path(folder) / FILE
        make_folder(Path(folder))
        with self._database() as database:
            database.execute("CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the values of the known keys, except damaged values."""
        known: dict[bytes, bytes] = {}
        with self._database() as database:
            for start in range(0, len(keys), AT_ONCE):
                part = keys[start : start + AT_ONCE]
                placeholders = ",".join("?" * len(part))
                rows = database.execute(f"SELECT key, value FROM scores WHERE key IN ({placeholders})", part)
                known.update((key, value[:-CHECK]) for key, value in rows if _is_whole(key, value))
        return known

    def store(self, values: Mapping[bytes, bytes]) -> None:
        """Store values by their keys."""
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
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the second from a message that quotes the file
            raise InputError(f"{self._path}: not a usable cache of scores ({error})") from None


def _check(key: bytes, value: bytes) -> bytes:
    return zlib.crc32(key + value).to_bytes(CHECK, "big")


def _is_whole(key: bytes, value: Any) -> bool:
    """Return whether a value was stored under this key and is undamaged."""
    return isinstance(value, bytes) and value[-CHECK:] == _check(key, value[:-CHECK])


class Journal:
    """A folder with feature values of finished groups, so that an interrupted run can continue.

    The key of a group is a hash of the signatures of the features and of the sentences. A list that is read again is
    divided into the same groups, so the values are bit for bit those of an uninterrupted run. The folder may be removed
    at any time.

    Raises:
        InputError: the folder cannot be created, or its `scores.sqlite` is not a usable database.
    """

    def __init__(self, folder: str, signatures: Mapping[str, str]) -> None:
        self._cache, self._labels = Cache(folder), list(signatures)
        self._start = "\n".join(signatures.values())

    def values(self, group: Group) -> dict[str, Array] | None:
        """Return arrays (candidates of the group, values) by label, or None if the group is not stored."""
        stored = self._cache.get([self._key(group)])
        if not stored:
            return None
        with np.load(io.BytesIO(*stored.values()), allow_pickle=False) as arrays:
            return dict(zip(self._labels, arrays.values(), strict=True))

    def store(self, group: Group, values: Mapping[str, Array]) -> None:
        """Store arrays (candidates of the group, values) by label."""
        buffer = io.BytesIO()
        np.savez(buffer, *(values[label] for label in self._labels))
        self._cache.store({self._key(group): buffer.getvalue()})

    def _key(self, group: Group) -> bytes:
        key = hashlib.blake2b(encode(self._start), digest_size=16)
        for sentence in group.sentences:
            key.update(encode(f"\n\n{sentence.sentence} {' '.join(sentence.source)}\n"))
            key.update(encode("\n".join(map(" ".join, sentence.hypotheses))))
            key.update(b"".join(line.line for line in sentence.lines))
            key.update(encode(f"\n{sentence.counts_bos_eos}"))
        return key.digest()
