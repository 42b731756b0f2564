"""Functions that numba compiles, and keeps compiled where it can."""

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import caching

Function = TypeVar("Function", bound=Callable[..., Any])
_Files: Any = caching.FunctionCache  # numba's hints leave it untyped


class _Cache(_Files):  # type: ignore[misc]
    """Numba's files of compiled code beside the source, or below the user's folder of caches.

    What cannot be read, such as code for records that another version named otherwise, is compiled again; what cannot
    be written is not kept.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling may raise any
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write compiled code."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)

    def _forget(self) -> None:
        try:
            self.flush()
        except OSError:
            self.disable()


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Have numba compile a function, with options of `numba.njit`.

    Small functions that make no array have `_nrt=False`, so that numba counts no references; it takes longer than BLEU.
    """

    def decorate(function: Function) -> Function:
        dispatcher: Any = numba.njit(**options)(function)
        with contextlib.suppress(RuntimeError):  # there is no folder that can be written
            dispatcher._cache = _Cache(function)
        return cast("Function", dispatcher)

    return decorate
