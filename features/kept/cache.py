"""Values that models gave before, kept between runs, so that the next list costs only what is new in it."""

import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moses_io.errors import InputError
from moses_io.folders import make_folder

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
