"""An n-gram language model, by KenLM."""

import importlib
import math
import re
from pathlib import Path
from types import ModuleType

from features.feature import CandidateFeature, Resources
from moses_io.errors import InputError, shown
from moses_io.streams import digest

_WHERE = re.compile(r"^Cannot read model '.*' \((.* threw \w+( because `.*')?\. )?|\)$")
"""What stands around the reason in KenLM's errors: the model, and the place in KenLM's own code."""


def require_kenlm() -> ModuleType:
    """Return the module kenlm, or say in an `InputError` how to get it."""
    try:
        return importlib.import_module("kenlm")
    except ImportError:
        hint = "pip install kenlm, or without a compiler, and from Python 3.13 on: pip install kenlm-ex"
        raise InputError(f"feature 'kenlm' needs the package kenlm, which is not installed ({hint})") from None


class KenLM(CandidateFeature):
    """Two values: log p(hypothesis) with `</s>` in nats, unknown words included, and the number of unknown words.

    KenLM itself counts in log10.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        kenlm = require_kenlm()
        if not Path(argument).is_file():
            raise InputError(f"{argument}: no such language model")
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        try:
            self._model = kenlm.Model(argument, config)
        except (OSError, UnicodeDecodeError) as error:
            undecoded = isinstance(error, UnicodeDecodeError)  # what KenLM quotes of the file
            reason = "bytes that are no UTF-8" if undecoded else _WHERE.sub("", str(error))
            raise InputError(f"{argument}: not a language model that KenLM reads: {shown(reason)}") from None
        self._state = kenlm.State
        self.signature = f"{type(self).__name__.lower()}|order:{self._model.order}|sha256:{digest(Path(argument))}"

    def row(self, source: tuple[str, ...], hypothesis: tuple[str, ...]) -> tuple[float, int]:
        """Score word after word."""
        before, after = self._state(), self._state()
        self._model.BeginSentenceWrite(before)
        total, unknown = 0.0, 0
        for token in hypothesis:
            word = token.encode(errors="surrogateescape").decode(errors="replace")
            scored = self._model.BaseFullScore(before, word, after)
            total += scored.log_prob
            unknown += scored.oov
            before, after = after, before
        total += self._model.BaseScore(before, "</s>", after)
        return total * math.log(10), unknown


class Reversed(KenLM):
    """The same for a model of reversed sentences: the last word is said first."""

    def row(self, source: tuple[str, ...], hypothesis: tuple[str, ...]) -> tuple[float, int]:
        """Score the words from the last to the first."""
        return super().row(source, hypothesis[::-1])
