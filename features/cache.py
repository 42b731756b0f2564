"""Scores that models gave before, kept between runs, so that the next list costs only what is new in it."""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from features.feature import Array, Candidates
from features.kinds.neural import Neural
from moses_io.errors import InputError
from moses_io.text import encode

FILE = "scores.sqlite"
AT_ONCE = 900
"""Keys of a query; SQLite takes 999 in its oldest versions."""


class Cached:
    """A feature that looks up what it said before of the same source and candidate, with the same content and settings.

    Values come back as they were given, bit for bit. Several processes may use one folder.

    Raises:
        InputError: the folder cannot be made, or holds a file of that name that is none of ours.
    """

    def __init__(self, feature: Neural, folder: str) -> None:
        self._feature, self.signature, self.alone = feature, feature.signature, feature.alone
        self._path = Path(folder) / FILE
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: {error.strerror}") from None
        with self._database() as database:
            database.execute("CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, values)."""
        keys = [key for candidates in sentences for key in self._keys(candidates)]
        with self._database() as database:
            known = dict(_look_up(database, keys))
        missing = list(_without(sentences, keys, known))
        if missing:
            values = np.ascontiguousarray(self._feature(missing), dtype=np.float64)
            new = [key for candidates in missing for key in self._keys(candidates)]
            known |= {key: row.tobytes() for key, row in zip(new, values, strict=True)}
            with self._database() as database:
                database.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?)", [(key, known[key]) for key in new])
        return np.array([np.frombuffer(known[key]) for key in keys])

    @property
    def steps(self) -> tuple[int, int]:
        """See `Neural`."""
        return self._feature.steps

    def _keys(self, candidates: Candidates) -> list[bytes]:
        start = hashlib.blake2b(f"{self.signature}\n".encode(), digest_size=16)
        start.update(encode(" ".join(candidates.source) + "\n"))
        keys = []
        for hypothesis in candidates.hypotheses:
            key = start.copy()
            key.update(encode(" ".join(hypothesis)))
            keys.append(key.digest())
        return keys

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
        except sqlite3.Error as error:
            raise InputError(f"{self._path}: not a usable cache of scores ({error})") from None


def _look_up(database: sqlite3.Connection, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        places = ",".join("?" * len(part))
        yield from database.execute(f"SELECT key, value FROM scores WHERE key IN ({places})", part)


def _without(sentences: Sequence[Candidates], keys: Sequence[bytes], known: dict[bytes, bytes]) -> Iterator[Candidates]:
    """Yield the sentences with those of their candidates that are not known."""
    start = 0
    for candidates in sentences:
        own = keys[start : start + len(candidates.hypotheses)]
        start += len(own)
        new = tuple(text for text, key in zip(candidates.hypotheses, own, strict=True) if key not in known)
        if new:
            yield replace(candidates, hypotheses=new)
