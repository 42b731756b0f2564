"""Compilation of functions with numba, cached on disk if possible."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numba
from numba.core import caching

Function = TypeVar("Function", bound=Callable[..., Any])
_Files: Any = caching.FunctionCache  # numba has no type hints for it


class _Cache(_Files):  # type: ignore[misc]
    """Numba's cache of compiled code, in the folder of the source file or in the user's cache folder.

    An entry that cannot be read is compiled again, for example code for records whose fields had other names in another
    version. If the cache cannot be written, the code is compiled but not stored.

    A process that writes an entry locks the cache. Otherwise two processes could number their entries alike, and the
    index of one would name the code of the other.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached code, or None if there is none or it cannot be read."""
        try:
            with self._locked(fcntl.LOCK_SH):
                return super().load_overload(sig, target_context)
        except Exception:  # unpickling may raise any exception
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code, ignoring errors of the file system."""
        with contextlib.suppress(OSError), self._locked(fcntl.LOCK_EX):
            super().save_overload(sig, data)

    @contextlib.contextmanager
    def _locked(self, mode: int) -> Iterator[None]:
        """Lock the folder of the cache, if it exists and the file system has locks."""
        descriptor = -1
        with contextlib.suppress(OSError):
            descriptor = os.open(self.cache_path, os.O_RDONLY)
            fcntl.flock(descriptor, mode)
        try:
            yield
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _forget(self) -> None:
        try:
            self.flush()
        except OSError:
            self.disable()


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function with `numba.njit(**options)`.

    Use `_nrt=False` for small functions that create no arrays. It turns off reference counting, which takes longer than
    the computation of BLEU.
    """

    def decorate(function: Function) -> Function:
        dispatcher: Any = numba.njit(**options)(function)
        with contextlib.suppress(RuntimeError):  # raised if no cache folder is writable
            dispatcher._cache = _Cache(function)
        return cast("Function", dispatcher)

    return decorate
