"""What a feature is, and the table of the kinds that can be named.

A feature looks at sentences with their candidates and returns numbers: natural logs and counts, higher is better,
summed over the tokens and not divided by their number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moses_io.hypothesis import Hypothesis

Array = NDArray[np.float64]


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
        readers: models by their folders, as features share them; see `features.reader`.
    """

    device: str = "auto"
    precision: str = "fp32"
    cache: str = ""
    readers: dict[tuple[str, ...], Any] = field(default_factory=dict, compare=False, repr=False)


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
        argument: what stands behind the colon, in brackets if it may be left out; empty for nothing.
        description: a line for `moses-rerank features`.
        takes: what the argument names: `models` (folders of ours), a `folder`, `files`, or else `text`.
    """

    target: str
    label: str
    argument: str
    description: str
    takes: str = "text"


FEATURES: dict[str, Kind] = {
    "neural": Kind(
        "features.kinds.neural:Neural", "Neural", "DIR", "log-probability of a model, </s> included", "models"
    ),
    "ensemble": Kind(
        "features.kinds.neural:Ensemble",
        "Ensemble",
        "DIR,DIR,…",
        "log-probability of the mean of several models",
        "models",
    ),
    "agreement": Kind(
        "features.kinds.agreement:Agreement",
        "Agreement",
        "DIR,DIR",
        "trace of the attentions of a forward and a backward model; the same over the shorter length",
        "models",
    ),
    "links": Kind(
        "features.kinds.agreement:Links",
        "Links",
        "DIR",
        "attention of a forward model on Moses' word alignment",
        "models",
    ),
    "kenlm": Kind(
        "features.kinds.language_model:KenLM",
        "KenLM",
        "ARPA",
        "log-probability of an n-gram model; unknown words",
        "files",
    ),
    "kenlm-reversed": Kind(
        "features.kinds.language_model:Reversed",
        "KenLMReversed",
        "ARPA",
        "the same, of the words from right to left",
        "files",
    ),
    "lexical": Kind(
        "features.kinds.lexical:Lexical", "Lexical", "FILE", "IBM model 1 by lex.f2e or lex.e2f of Moses", "files"
    ),
    "ibm1": Kind(
        "features.kinds.lexical:Estimated",
        "IBM",
        "SOURCE,TARGET",
        "IBM model 1 of a corpus, in both directions",
        "files",
    ),
    "phrases": Kind(
        "features.kinds.phrases:Phrases", "Phrases", "", "phrases, their mean length, unaligned words, monotone steps"
    ),
    "length": Kind(
        "features.kinds.length:Length",
        "Length",
        "[SOURCE,TARGET]",
        "words; with a corpus log-density of the ratio",
        "files",
    ),
    "copied": Kind("features.kinds.surface:Copied", "Copied", "", "words that stand in the source, too"),
    "repetition": Kind(
        "features.kinds.surface:Repetition", "Repetition", "", "words, pairs and triples said once more"
    ),
    "numbers": Kind("features.kinds.surface:Numbers", "Numbers", "", "numbers that source and candidate do not share"),
    "punctuation": Kind("features.kinds.surface:Punctuation", "Punctuation", "", "punctuation that they do not share"),
    "consensus": Kind(
        "features.kinds.consensus:Consensus",
        "Consensus",
        "bleu|chrf[,SCALE]",
        "likeness to the list, weighted by Moses' total",
    ),
    "posteriors": Kind(
        "features.kinds.consensus:Posteriors",
        "Posteriors",
        "[SCALE]",
        "posterior of the n-grams, a value for each order",
    ),
    "rest": Kind("features.kinds.rest:Rest", "Rest", "MOSES.INI", "what is in Moses' total and not printed", "files"),
    "scores": Kind(
        "features.kinds.external:Scores", "Scores", "FILE", "output of another tool, a line a candidate", "files"
    ),
    "command": Kind(
        "features.kinds.external:Command", "Command", "COMMAND", "numbers that a program prints for source, candidate"
    ),
    "hf": Kind(
        "features.kinds.huggingface:HuggingFace",
        "HF",
        "DIR",
        "log-probability of a model of transformers; DIR[LANG,LANG] for one of many languages",
        "folder",
    ),
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
