"""The models and features of an experiment that names none, by what its corpus looks like."""

from dataclasses import dataclass
from typing import Any

from rerank.experiment.corpus import Corpus


@dataclass(frozen=True)
class Recipe:
    """Tables of an experiment file, and what was seen of the corpus that led to them."""

    models: dict[str, dict[str, Any]]
    features: dict[str, str]
    remarks: tuple[str, ...]


def find_recipe(corpus: Corpus) -> Recipe:
    """Return what gives the best translations after some ten minutes of two cores (docs/results.md)."""
    settings = {"epochs": 8}
    models = {
        "forward": {"preset": "rnnsearch", **settings},
        "backward": {"preset": "rnnsearch", "backward": True, **settings},
    }
    features = {"NMT": "neural:forward", "NMTback": "neural:backward"}
    return Recipe(models, features, (f"{corpus.pairs:,} pairs",))
