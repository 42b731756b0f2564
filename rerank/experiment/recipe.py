"""The models and features of an experiment that names none, chosen by what its corpus looks like."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from features.models.config import DEV_FOLDS
from features.models.settings import Training
from features.models.training.request import ParallelFiles
from moses_io.files.streams import check_plain
from moses_io.files.text import read_parallel, tokens

BUDGET = 1_700_000
"""Target words that an `rnnsearch` reads of the corpus in all, so that two train in some ten minutes of two cores."""

WORDS_A_SECOND = 3_000
"""Target words that it reads on a core without bfloat16 products."""

EPOCHS, FEWEST_UPDATES = 4, 1_500
"""Epochs of a training within the budget, and its least updates: with fewer it is `SMALL`, then epochs are added."""

SMALL = {"batch": 16, "hidden": 160, "dropout": 0.2, "rate": 0.004}
"""Settings of a small corpus."""

ADAPT, FEWEST_DEV = 3, 50
"""Epochs on dev at the end of a training that is `SMALL` and lacks many words, of so many sentences or more."""

LARGE = {"tie": True, "bfloat16": True}
"""Settings of an `rnnsearch` of any other."""

CANDIDATES, FEWEST_JOINING = 10, 20_000
"""Translations of each model that join the lists, and the sentence pairs from which those join that lack many words."""

JOINED_VALUES, ALONE_VALUES = "logprob,added", "logprob,entropy"
"""What is read of models where their translations join the lists, and where Moses' candidates are alone."""

TRANSFORMER: dict[str, Any] = {
    "preset": "transformer", "hidden": 128, "embedding": 128, "layers": 4, "encoder_layers": 4, "feedforward": 256,
    "lexicon": "bias", "tie": True, "dropout": 0.2,
    "bfloat16": True, "rate": 0.005, "warmup": 400, "tokens": 2000, "average": 3,
}  # fmt: skip
"""Settings of another model where the corpus is not `SMALL`; it learns what an `rnnsearch` does not."""

TRANSFORMER_BUDGET, TRANSFORMER_MINUTES = 2 * BUDGET, 23
"""Target words that it reads in all, and the minutes that this takes on a core without bfloat16 products."""

MOST_UNKNOWN, MOST_WORDS = 0.015, 15_000
"""Share of unknown words of dev, and different words, of either side, up to which models read whole words."""

PIECES = 4_000
"""Pieces of words that models read else; at most one for two sentence pairs, and more than there are letters."""

BACKWARD = {"NMTback": "neural:backward[logprob]"}
"""Feature of a backward model."""

JOINED = ("Translations of the models' own join the lists; without `candidates` and `added` there are Moses' alone.",)
SHORTER = ("In less time: without the transformer, or without `backward`, and its feature.",)
ADAPTED = ("At last they learn from dev; of its sentences each is scored by weights that did not see it (`adapt`).",)


@dataclass(frozen=True)
class Side:
    """One language of a corpus.

    Attributes:
        words: of the training text.
        vocabulary: different words that are frequent enough for a model of whole words.
        letters: different ones of all words.
        unknown: share of the words of dev that are not in it, 0 … 1.
    """

    words: int
    vocabulary: int
    letters: int
    unknown: float


@dataclass(frozen=True)
class Corpus:
    """A training corpus, beside a dev set; both are counted in sentence pairs."""

    pairs: int
    dev: int
    source: Side
    target: Side


def look_at(train: ParallelFiles, dev: ParallelFiles) -> Corpus:
    """Count the words of both; errors are those of `read_parallel`, and files that cannot be read twice."""
    for path in (train.source, train.target, dev.source, dev.target):
        check_plain(path)
    training, held = (read_parallel(files.source, files.target) for files in (train, dev))
    source, target = (_side([pair[side] for pair in training], [pair[side] for pair in held]) for side in (0, 1))
    return Corpus(pairs=len(training), dev=len(held), source=source, target=target)


def _side(training: list[str], dev: list[str]) -> Side:
    counts = Counter(word for line in training for word in tokens(line))
    known = {word for word, count in counts.items() if count >= Training().frequency}
    words = [word for line in dev for word in tokens(line)]
    unknown = sum(word not in known for word in words) / max(1, len(words))
    letters = len({letter for word in counts for letter in word})
    return Side(words=counts.total(), vocabulary=len(known), letters=letters, unknown=unknown)


@dataclass(frozen=True)
class Recipe:
    """Tables of an experiment file, and what was seen of the corpus that led to them.

    Attributes:
        longer: a model more, and its feature, for those who have more time; none where nothing is known to gain by it.
    """

    models: dict[str, dict[str, Any]]
    features: dict[str, str]
    remarks: tuple[str, ...]
    longer: "Recipe | None" = None


def find_recipe(corpus: Corpus) -> Recipe:
    """Return models that train within the budget; docs/lab/choices.md has figures and what else was tried."""
    words, batch, sides = corpus.target.words + corpus.pairs, Training().batch, (corpus.source, corpus.target)
    most = max(1, BUDGET // words)
    epochs = min(EPOCHS, most)
    settings: dict[str, Any] = {"preset": "rnnsearch", "epochs": epochs, "lexicon": "bias"}
    if small := epochs * corpus.pairs < FEWEST_UPDATES * batch:
        needed = math.ceil(FEWEST_UPDATES * SMALL["batch"] / corpus.pairs)
        settings |= {**SMALL, "epochs": min(most, max(epochs, needed))}
    else:
        settings |= LARGE
    if words > BUDGET:
        settings["updates"] = BUDGET * corpus.pairs // (words * settings.get("batch", batch))
    known = all(side.unknown <= MOST_UNKNOWN for side in sides)
    if not known or any(side.vocabulary > MOST_WORDS for side in sides):
        settings["bpe"] = max(min(PIECES, corpus.pairs // 2), *(2 * side.letters for side in sides))
    if known or (not small and corpus.pairs >= FEWEST_JOINING):
        settings["candidates"] = CANDIDATES
    elif small and (adapt := _adapt(corpus, settings["epochs"])):
        settings["adapt"] = adapt
    return _with_models(corpus, settings, small)


def _with_models(corpus: Corpus, settings: dict[str, Any], small: bool) -> Recipe:
    """Return a recipe of two `rnnsearch`; where a corpus is not small a transformer trains first, which takes longest.

    There a backward model trains last, while others translate or score.
    """
    values = _values(settings)
    models = {"left-to-right": settings, "right-to-left": {**settings, "right-to-left": True}}
    features = {"NMTltr": f"neural:left-to-right[{values}]", "NMTrtl": f"neural:right-to-left[{values}]"}
    longer = None
    if not small:
        words = corpus.target.words + corpus.pairs
        third, longer = (_transformer(words, settings, order) for order in ("right-to-left", "left-to-right"))
        backward = {key: value for key, value in settings.items() if key != "candidates"} | {"backward": True}
        models, features = third.models | models | {"backward": backward}, features | third.features | BACKWARD
    return Recipe(
        models=models,
        features=features | {"Consensus": "consensus:chrf"},
        remarks=(
            *_remarks(corpus, settings, small),
            *(() if small else SHORTER),
            *(JOINED if "candidates" in settings else ()),
            *(ADAPTED if "adapt" in settings else ()),
        ),
        longer=longer,
    )


def _adapt(corpus: Corpus, epochs: int) -> int:
    """Return epochs on dev, and on all but one of its folds each, that take no longer than the training before."""
    return min(ADAPT, epochs * corpus.pairs // ((DEV_FOLDS + 1) * corpus.dev)) if corpus.dev >= FEWEST_DEV else 0


def _values(settings: dict[str, Any]) -> str:
    return JOINED_VALUES if "candidates" in settings else ALONE_VALUES


def _transformer(words: int, beside: dict[str, Any], order: str) -> Recipe:
    """Return a transformer of an order of words, which translates, if at all, with the `rnnsearch` of this order."""
    settings = TRANSFORMER | {"epochs": max(1, TRANSFORMER_BUDGET // words)}
    if words > TRANSFORMER_BUDGET:
        settings["updates"] = TRANSFORMER_BUDGET // TRANSFORMER["tokens"]
    if "bpe" in beside:
        settings["bpe"] = beside["bpe"]
    if "candidates" in beside:
        settings["candidates"] = order
    if order == "right-to-left":
        settings["right-to-left"] = True
    label = {"left-to-right": "NMTltr2", "right-to-left": "NMTrtl2"}[order]
    return Recipe(
        models={f"{order}-2": settings},
        features={label: f"neural:{order}-2[{_values(beside)}]"},
        remarks=(f"One more, which takes {TRANSFORMER_MINUTES} min of a core, with its feature below:",),
    )


def _remarks(corpus: Corpus, settings: dict[str, Any], small: bool) -> tuple[str, ...]:
    """Say what was seen of the corpus, and how long models train that read no more of it than the budget has."""
    source, target = corpus.source, corpus.target
    units = "pieces of words" if "bpe" in settings else "whole words"
    words = corpus.target.words + corpus.pairs
    on_dev = settings.get("adapt", 0) * (DEV_FOLDS + 1) * corpus.dev * words / corpus.pairs
    minutes = max(1, round((min(settings["epochs"] * words, BUDGET) + on_dev) / WORDS_A_SECOND / 60))
    third = "" if small else f" `rnnsearch` and {TRANSFORMER_MINUTES} for the transformer"
    return (
        f"Chosen for {corpus.pairs:,} sentence pairs. Of dev's words {100 * source.unknown:.1f} % in the source and "
        f"{100 * target.unknown:.1f} % in the target",
        f"are not among the {source.vocabulary:,} and {target.vocabulary:,} words that training has at least twice:",
        f"models read {units}. Training takes some {minutes} min of a core for each{third};",
        "more epochs may well learn more.",
    )
