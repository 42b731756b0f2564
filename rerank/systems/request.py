"""Which models add translations of their own to a list."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from features.request import row_of
from moses_io.errors import InputError, shown
from moses_io.merge import DECODER, INDICATOR, LIST_NAME

MOST = 10_000
"""Candidates of a model for a sentence."""

_NOT_IN_NAMES = re.compile("[^0-9A-Za-z]")


@dataclass(frozen=True)
class CandidateRequest:
    """Candidates of forward models that translate together, for each sentence.

    Attributes:
        name: of the list of these, see `list_name`.
        folders: of the models; they have one target vocabulary and order of words.
        size: of the beam, all of whose translations become candidates.
    """

    name: str
    folders: tuple[str, ...]
    size: int

    @property
    def text(self) -> str:
        """Size and folders, as a reranker keeps them."""
        return f"{self.size}:{','.join(self.folders)}"

    @property
    def identity(self) -> list[str | int]:
        """What tells the request from others, but for the models themselves."""
        return [self.name, self.size, len(self.folders)]


def list_name(model: str) -> str:
    """Return the letters and digits of a model's name, which name its list."""
    return _NOT_IN_NAMES.sub("", model)


def indicators(names: Sequence[str]) -> list[str]:
    """Return the features that say who has a candidate: the decoder's list, and those of these names, if any."""
    return [f"{INDICATOR}{name}" for name in (DECODER, *names)] if names else []


def check_candidates(size: Any, model: str, backward: bool) -> None:
    """Refuse a number of candidates that is none, or a model that can have none.

    Raises:
        InputError: with the reason.
    """
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST:
        raise InputError(f"candidates: expected a whole number from 1 to {MOST}, found {shown(size)}")
    check_forward(backward)
    if not LIST_NAME.fullmatch(list_name(model)):
        raise InputError("candidates: expected a name that begins with a letter")


def check_forward(backward: bool) -> None:
    """Refuse a model that can have no candidates; an `InputError` says why."""
    if backward:
        raise InputError("candidates: a backward model says the source, and has none")


def check_names(models: Sequence[str], features: Mapping[str, str]) -> None:
    """Refuse models whose lists have one name, an indicator with the label of a feature, and features of the decoder.

    These, `KIND[:ARG]` by their labels, need what only the decoder's own lines have: its alignment, its total, or
    scores in their order.

    Raises:
        InputError: with the name.
    """
    names = [list_name(model) for model in models]
    for place, name in enumerate(names):
        if name in (DECODER, *names[:place]):
            raise InputError(f"models.{models[place]}: another list is called {name}, too")
    for label in indicators(names):
        if label in features:
            raise InputError(f"features.{label}: that is what says who has a candidate; name another label")
    for label, text in features.items():
        row = row_of(text)
        if names and row and row.of_decoder:
            kind = text.partition(":")[0]
            raise InputError(f"features.{label}: {kind} is for the decoder's own candidates; name no `candidates`")
