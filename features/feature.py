"""What a feature is, and the table of the kinds that can be named.

A feature looks at sentences with their candidates and returns numbers: natural logs and counts, higher is better,
summed over the tokens and not divided by their number.
"""

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moses_io.errors import InputError, nearest
from moses_io.hypothesis import Hypothesis

Array = NDArray[np.float64]

_LABEL = re.compile(r"[A-Za-z][0-9A-Za-z]*")

REST = re.compile("Rest[0-9]*")
"""Labels of the feature `rest`: it has weight 1 unless the start says otherwise, and is never tuned."""


@dataclass(frozen=True)
class Candidates:
    """A source sentence and its candidates.

    Attributes:
        sentence: its id.
        source: its tokens.
        hypotheses: tokens of each candidate.
        lines: of the list, for features that look at more than the text; may be left out for others.
    """

    sentence: int
    source: tuple[str, ...]
    hypotheses: tuple[tuple[str, ...], ...]
    lines: tuple[Hypothesis, ...] = ()


@dataclass(frozen=True)
class Resources:
    """What a feature may use.

    Attributes:
        device: `auto`, `cpu` or `cuda`.
        precision: of the products of models, `fp32` or `bf16`.
        cache: folder of the scores that models gave before; empty for none.
    """

    device: str = "auto"
    precision: str = "fp32"
    cache: str = ""


class Feature(Protocol):
    """A function of sentences and their candidates."""

    signature: str
    """What it was made with: settings and content, not paths."""

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(candidates of all sentences, values) in the order of the list."""


@dataclass(frozen=True)
class Kind:
    """A row of the table.

    Attributes:
        target: `module:callable` that makes the feature from its argument and `Resources`.
        label: start of the name in a list when the user gives none.
        argument: what stands behind the colon, empty for nothing.
        description: a line for `moses-rerank features`.
        models: the argument names folders of models.
    """

    target: str
    label: str
    argument: str
    description: str
    models: bool = False


FEATURES: dict[str, Kind] = {
    "neural": Kind("features.neural:Neural", "Neural", "DIR", "log-probability of a model, </s> included", True),
    "ensemble": Kind(
        "features.neural:Ensemble",
        "Ensemble",
        "DIR,DIR,…",
        "log-probability of the mean of models' distributions",
        True,
    ),
    "kenlm": Kind(
        "features.language_model:KenLM", "KenLM", "ARPA", "log-probability of an n-gram model; number of unknown words"
    ),
    "length": Kind("features.length:Length", "Length", "", "number of words"),
    "rest": Kind("features.rest:Rest", "Rest", "MOSES.INI", "what is in Moses' total and not printed; never tuned"),
}


VALUES = {
    "logprob": "log-probability, </s> included",
    "known": "the same without tokens that the model does not know",
    "unknown": "number of tokens that the model does not know",
    "worst": "log-probability of the worst token",
    "worst3": "mean log-probability of the three worst tokens",
    "entropy": "entropy of the attention, summed over the tokens",
    "coverage": "sum over source words of log min(1, attention) (Wu et al. 2016)",
    "deviation": "minus the sum over source words of (1 - attention)² (Xu et al. 2015)",
    "fertility": "log-density of the attention of source words, by a model with global fertility (Cohn et al. 2016)",
}
"""What a model can say of a candidate; named in brackets behind its folder."""


@dataclass(frozen=True)
class FeatureRequest:
    """A feature as asked for: `[LABEL=]KIND[:ARG]`."""

    label: str
    kind: str
    argument: str

    @property
    def parts(self) -> list[str]:
        """The parts of the argument: one, or the folders of several models."""
        if not FEATURES[self.kind].models:
            return [self.argument]
        folders, _ = split_values(self.argument)
        return folders.split(",") if self.kind == "ensemble" else [folders]

    def with_parts(self, parts: Sequence[str]) -> "FeatureRequest":
        """Return the request with other folders, and the same values of them."""
        return replace(self, argument=",".join(parts) + self.values)

    @property
    def values(self) -> str:
        """The names of values behind the folders, in their brackets; empty if none are named."""
        return self.argument.removeprefix(",".join(self.parts))

    def load(self, resources: Resources) -> Feature:
        """Make the feature: read its files, put its model on the device."""
        module, name = FEATURES[self.kind].target.split(":")
        feature: Feature = getattr(importlib.import_module(module), name)(self.argument, resources)
        if resources.cache and FEATURES[self.kind].models:
            feature = importlib.import_module("features.cache").Cached(feature, resources.cache)
        return feature


def split_values(argument: str) -> tuple[str, tuple[str, ...]]:
    """Split `DIR[NAME,…]` into the folders and the names of values."""
    folders, bracket, names = argument.removesuffix("]").rpartition("[")
    if not (bracket and argument.endswith("]")):
        return argument, ()
    return folders, tuple(names.split(","))


def parse_requests(texts: Sequence[str]) -> list[FeatureRequest]:
    """Read `[LABEL=]KIND[:ARG]`; without a label, the kind's own with the next free number.

    Raises:
        InputError: an unknown kind, a label that Moses' tools would not take for a dense one, a label asked for
            twice, or a missing argument.
    """
    requests: list[FeatureRequest] = []
    for text in texts:
        head, _, argument = text.partition(":")
        label, named, kind = head.rpartition("=")
        if kind not in FEATURES:
            raise InputError(f"unknown feature {kind!r}{nearest(kind, list(FEATURES))}")
        if bool(argument) != bool(FEATURES[kind].argument):
            raise InputError(f"feature {text!r}: expected {usage(kind)}")
        taken = {request.label for request in requests}
        if not named:
            label = next(name for n in range(len(texts)) if (name := f"{FEATURES[kind].label}{n}") not in taken)
        if not _LABEL.fullmatch(label):
            raise InputError(f"label {label!r}: expected a letter, then letters and digits; Moses' tools need it so")
        if (kind == "rest") != bool(REST.fullmatch(label)):
            raise InputError(f"label {label!r}: Rest, Rest0 … are the labels of the feature rest, and of no other")
        if label in taken:
            raise InputError(f"label {label!r} is given to two features")
        requests.append(FeatureRequest(label, kind, argument))
    return requests


def usage(kind: str) -> str:
    """Return how a kind is written."""
    argument = FEATURES[kind].argument
    return f"{kind}:{argument}" if argument else kind
