"""The reranker: a linear model over features, with tuning, selection, evaluation and the command line.

`__all__` lists the public names. `docs/guide/python.md` has examples. Each name is imported at its first use.
"""

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from features.progress import show_progress
    from moses_io.files.errors import InputError
    from moses_io.hypothesis import Hypothesis
    from moses_io.nbest import SentenceList
    from rerank.library import TrainedModel, TunedWeights, evaluate, read_nbest, score, train, tune
    from rerank.linear.ranking import Estimate
    from rerank.metrics.evaluation import Evaluation, Score
    from rerank.reranker.reranker import Reranker, ScoredCandidate, ScoredSentence
    from rerank.tuning.gain import Gain

__all__ = [
    "Estimate",
    "Evaluation",
    "Gain",
    "Hypothesis",
    "InputError",
    "Reranker",
    "Score",
    "ScoredCandidate",
    "ScoredSentence",
    "SentenceList",
    "TrainedModel",
    "TunedWeights",
    "evaluate",
    "read_nbest",
    "score",
    "show_progress",
    "train",
    "tune",
]

__version__ = version("moses-rerank")

_MODULES = {
    "Estimate": "rerank.linear.ranking",
    "Evaluation": "rerank.metrics.evaluation",
    "Gain": "rerank.tuning.gain",
    "Hypothesis": "moses_io.hypothesis",
    "InputError": "moses_io.files.errors",
    "Reranker": "rerank.reranker.reranker",
    "Score": "rerank.metrics.evaluation",
    "ScoredCandidate": "rerank.reranker.reranker",
    "ScoredSentence": "rerank.reranker.reranker",
    "SentenceList": "moses_io.nbest",
    "TrainedModel": "rerank.library",
    "TunedWeights": "rerank.library",
    "evaluate": "rerank.library",
    "read_nbest": "rerank.library",
    "score": "rerank.library",
    "show_progress": "features.progress",
    "train": "rerank.library",
    "tune": "rerank.library",
}
"""Module of each public name."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'rerank' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
