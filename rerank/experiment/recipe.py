"""The models and features of an experiment that names none, chosen by what its corpus looks like."""

from dataclasses import dataclass
from typing import Any

from features.models.settings import Training
from rerank.experiment.corpus import Corpus

WORDS = 1_200_000
"""Target words, of all epochs together, that a model reads in some six minutes of one core."""

SPEED = 3_300
"""Target words that a core reads a second."""

FEWEST_EPOCHS, MOST_EPOCHS = 3, 8

FEWEST_UPDATES = 1_500
"""Updates below which batches are halved."""

MOST_UNKNOWN, MOST_WORDS = 0.12, 15_000
"""Share of unknown words of dev, and different words, of either side, up to which models read whole words."""

PIECES = 4_000
"""Pieces of words that models read else."""


@dataclass(frozen=True)
class Recipe:
    """Tables of an experiment file, and what was seen of the corpus that led to them."""

    models: dict[str, dict[str, Any]]
    features: dict[str, str]
    remarks: tuple[str, ...]


def find_recipe(corpus: Corpus) -> Recipe:
    """Return what gives the best translations within some ten minutes of two cores; docs/results.md has the figures."""
    words = corpus.target.words + corpus.pairs
    epochs = min(MOST_EPOCHS, max(FEWEST_EPOCHS, WORDS // words))
    settings: dict[str, Any] = {"preset": "rnnsearch", "epochs": epochs}
    if epochs < MOST_EPOCHS // 2:
        settings["dropout"] = 0.2
    if epochs * corpus.pairs < FEWEST_UPDATES * Training().batch:
        settings["batch"] = Training().batch // 2
    if any(side.unknown > MOST_UNKNOWN or side.vocabulary > MOST_WORDS for side in (corpus.source, corpus.target)):
        settings["bpe"] = PIECES
    return Recipe(
        models={"left-to-right": settings, "right-to-left": {**settings, "right-to-left": True}},
        features={"NMTltr": "neural:left-to-right", "NMTrtl": "neural:right-to-left"},
        remarks=_remarks(corpus, "pieces of words" if "bpe" in settings else "whole words", epochs * words),
    )


def _remarks(corpus: Corpus, units: str, words: int) -> tuple[str, ...]:
    """Say what was seen of the corpus; a model reads so many words in training."""
    source, target = corpus.source, corpus.target
    minutes = max(1, round(words / SPEED / 60))
    return (
        f"Chosen for {corpus.pairs:,} sentence pairs. Of dev's words {100 * source.unknown:.1f} % in the source and "
        f"{100 * target.unknown:.1f} % in the target",
        f"are not among the {source.vocabulary:,} and {target.vocabulary:,} words that training has at least twice:",
        f"models read {units}. Training takes some {minutes} min of a core for each.",
    )
