"""Default models and features for an experiment that names none, chosen by size and vocabulary of its corpus."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from features.models.config import DEV_FOLDS
from features.models.cost import TextSize, training_seconds
from features.models.settings import Training
from features.models.training.request import TrainingRequest
from moses_io.files.streams import check_plain
from moses_io.files.text import ParallelFiles, parallel_lines, tokens

BUDGET = 1_700_000
"""Maximum target words, over all epochs, for training an `rnnsearch`.

Two such models train in about 10 minutes on two cores.
"""

EPOCHS, FEWEST_UPDATES = 4, 1_500
"""Epochs of a training within the budget, and its minimum updates.

With fewer updates the settings are `SMALL`, and epochs are added as far as the budget allows.
"""

SMALL = {"batch_size": 16, "hidden_size": 160, "dropout": 0.2, "learning_rate": 0.004}
"""Settings of an `rnnsearch` on a small corpus."""

ADAPT, FEWEST_DEV = 3, 50
"""Maximum epochs of fine-tuning on dev, and the minimum sentences of dev for it.

Only a `SMALL` training with many unknown words is fine-tuned.
"""

LARGE = {"tied_softmax": True, "bfloat16": True}
"""Settings of an `rnnsearch` on a larger corpus."""

CANDIDATES, FEWEST_JOINING = 10, 20_000
"""Translations per model that are added to the lists, and minimum sentence pairs for that.

The minimum only applies if many words of dev are unknown.
"""

JOINED_VALUES, ALONE_VALUES = "logprob,added", "logprob,entropy"
"""Values that features read from models with added candidates, and with candidates of Moses only."""

TRANSFORMER: dict[str, Any] = {
    "preset": "transformer", "hidden_size": 128, "embedding_size": 128, "decoder_layers": 4, "encoder_layers": 4,
    "feedforward_size": 256, "lexicon": "bias", "tied_softmax": True, "dropout": 0.2, "bfloat16": True,
    "learning_rate": 0.005, "warmup_updates": 400, "batch_tokens": 2000, "average_checkpoints": 3,
}  # fmt: skip
"""Settings of an additional model if the corpus is not `SMALL`. It complements the `rnnsearch` models."""

TRANSFORMER_BUDGET = 2 * BUDGET
"""Maximum target words, over all epochs, for the transformer."""

MOST_UNKNOWN, MOST_WORDS = 0.015, 15_000
"""Maximum fraction of unknown words in dev and maximum vocabulary, on either side, for models of whole words."""

PIECES = 4_000
"""Number of subwords of other models.

It is limited to half the number of sentence pairs, but is at least twice the number of distinct characters.
"""

BACKWARD = {"NMTback": "neural:backward[logprob]"}
"""Feature of the backward model. It takes longer than all others, so only a shortlist gets it."""

JOINED = ("Models add translations to the lists. Without `candidates` and `added` the lists are Moses' own.",)
SHORTER = ("To save time, remove the transformer or `backward`, together with its feature.",)
ADAPTED = (
    "Training ends with fine-tuning on dev (`fine_tuning_epochs`). Each fold of dev is scored by a model that was not "
    "tuned on it.",
)


@dataclass(frozen=True)
class Side:
    """One side of a parallel corpus.

    Attributes:
        words: running words of the training text.
        vocabulary: distinct words that are frequent enough for the vocabulary of a word-level model.
        letters: distinct characters in all words.
        unknown: fraction of the running words of dev that are not in the vocabulary, 0 … 1.
    """

    words: int
    vocabulary: int
    letters: int
    unknown: float


@dataclass(frozen=True)
class Corpus:
    """A training corpus with a dev set.

    Attributes:
        pairs: sentence pairs of the corpus.
        dev: sentence pairs of dev.
        source: counts of the source side.
        target: counts of the target side.
    """

    pairs: int
    dev: int
    source: Side
    target: Side


def inspect_corpus(train: ParallelFiles, dev: ParallelFiles) -> Corpus:
    """Count sentence pairs, words and characters of a corpus and of dev.

    Raises:
        InputError: as `parallel_lines`, or a file is no plain file.
    """
    for path in (train.source, train.target, dev.source, dev.target):
        check_plain(path)
    pairs, training = _count(train)
    dev_pairs, held = _count(dev)
    source, target = (_side(*counts) for counts in zip(training, held, strict=True))
    return Corpus(pairs=pairs, dev=dev_pairs, source=source, target=target)


def _count(files: ParallelFiles) -> tuple[int, tuple[Counter[str], Counter[str]]]:
    """Return the number of pairs, and how often each word occurs in source and target."""
    pairs, sides = 0, (Counter[str](), Counter[str]())
    for pair in parallel_lines(files.source, files.target):
        pairs += 1
        for counts, line in zip(sides, pair, strict=True):
            counts.update(tokens(line))
    return pairs, sides


def _side(training: Counter[str], dev: Counter[str]) -> Side:
    known = {word for word, count in training.items() if count >= Training().min_frequency}
    unknown = sum(count for word, count in dev.items() if word not in known) / max(1, dev.total())
    letters = len({letter for word in training for letter in word})
    return Side(words=training.total(), vocabulary=len(known), letters=letters, unknown=unknown)


@dataclass(frozen=True)
class Recipe:
    """Tables of an experiment file.

    Attributes:
        models: the table `[models]`.
        features: the table `[features]`.
        remarks: comment lines that describe the corpus and the training time.
        longer: an additional model with its feature, for users with more time, or None if it is not known to help.
        shortlist: the table `[shortlist]`, or empty if there is none.
    """

    models: dict[str, dict[str, Any]]
    features: dict[str, str]
    remarks: tuple[str, ...]
    longer: "Recipe | None" = None
    shortlist: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of the experiment file by name."""
        tables = {"models": self.models, "features": self.features}
        return tables | ({"shortlist": dict(self.shortlist)} if self.shortlist else {})


def find_recipe(corpus: Corpus) -> Recipe:
    """Return models that train within the budget, and their features. `docs/lab/choices.md` has the experiments."""
    # Each sentence pair adds one `</s>` to the target words.
    words, batch, sides = corpus.target.words + corpus.pairs, Training().batch_size, (corpus.source, corpus.target)
    most = max(1, BUDGET // words)
    epochs = min(EPOCHS, most)
    settings: dict[str, Any] = {"preset": "rnnsearch", "epochs": epochs, "lexicon": "bias"}
    if small := epochs * corpus.pairs < FEWEST_UPDATES * batch:
        needed = math.ceil(FEWEST_UPDATES * SMALL["batch_size"] / corpus.pairs)
        settings |= {**SMALL, "epochs": min(most, max(epochs, needed))}
    else:
        settings |= LARGE
    if words > BUDGET:
        settings["updates"] = BUDGET * corpus.pairs // (words * settings.get("batch_size", batch))
    known = all(side.unknown <= MOST_UNKNOWN for side in sides)
    if not known or any(side.vocabulary > MOST_WORDS for side in sides):
        settings["bpe"] = max(min(PIECES, corpus.pairs // 2), *(2 * side.letters for side in sides))
    if known or (not small and corpus.pairs >= FEWEST_JOINING):
        settings["candidates"] = CANDIDATES
    elif small and (adapt := _adapt(corpus, settings["epochs"])):
        settings["fine_tuning_epochs"] = adapt
    return _with_models(corpus, settings, small)


def _with_models(corpus: Corpus, settings: dict[str, Any], small: bool) -> Recipe:
    """Return a recipe of two `rnnsearch` models, left to right and right to left.

    If the corpus is not small, a transformer and a backward model are added. The transformer trains first, as it takes
    longest. The backward model trains last, because other models can translate and score at the same time.
    """
    values = _values(settings)
    models = {"left-to-right": settings, "right-to-left": {**settings, "right_to_left": True}}
    features = {"NMTltr": f"neural:left-to-right[{values}]", "NMTrtl": f"neural:right-to-left[{values}]"}
    longer = None
    if not small:
        third, longer = (_transformer(corpus, settings, order) for order in ("right-to-left", "left-to-right"))
        backward = {key: value for key, value in settings.items() if key != "candidates"} | {"backward": True}
        models, features = third.models | models | {"backward": backward}, features | third.features | BACKWARD
    return Recipe(
        models=models,
        features=features | {"Consensus": "consensus:chrf"},
        remarks=(
            *_remarks(corpus, models),
            *(() if small else SHORTER),
            *(JOINED if "candidates" in settings else ()),
            *(ADAPTED if "fine_tuning_epochs" in settings else ()),
        ),
        longer=longer,
        shortlist={} if small else {"features": list(BACKWARD)},
    )


def _adapt(corpus: Corpus, epochs: int) -> int:
    """Return the epochs of fine-tuning on dev, 0 for none.

    Fine-tuning runs on all of dev, and again without each fold. Together this takes no longer than the training before.
    """
    return min(ADAPT, epochs * corpus.pairs // ((DEV_FOLDS + 1) * corpus.dev)) if corpus.dev >= FEWEST_DEV else 0


def _values(settings: dict[str, Any]) -> str:
    return JOINED_VALUES if "candidates" in settings else ALONE_VALUES


def _transformer(corpus: Corpus, beside: dict[str, Any], order: str) -> Recipe:
    """Return a recipe of one transformer.

    If models add candidates, it translates together with the `rnnsearch` of this order.

    Args:
        corpus: the corpus.
        beside: settings of the `rnnsearch` models.
        order: "left-to-right" or "right-to-left".
    """
    words = corpus.target.words + corpus.pairs
    settings = TRANSFORMER | {"epochs": max(1, TRANSFORMER_BUDGET // words)}
    if words > TRANSFORMER_BUDGET:
        settings["updates"] = TRANSFORMER_BUDGET // TRANSFORMER["batch_tokens"]
    if "bpe" in beside:
        settings["bpe"] = beside["bpe"]
    if "candidates" in beside:
        settings["translate_with"] = order
    if order == "right-to-left":
        settings["right_to_left"] = True
    label = {"left-to-right": "NMTltr2", "right-to-left": "NMTrtl2"}[order]
    minutes = _minutes(corpus, settings)
    return Recipe(
        models={f"{order}-2": settings},
        features={label: f"neural:{order}-2[{_values(beside)}]"},
        remarks=(f"An optional model, which takes {minutes} min on one core, with its feature below:",),
    )


def _remarks(corpus: Corpus, models: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    """Return comment lines that describe the corpus and estimate the training time."""
    source, target = corpus.source, corpus.target
    minutes = {settings["preset"]: _minutes(corpus, settings) for settings in models.values()}
    units = "subwords" if "bpe" in models["left-to-right"] else "whole words"
    which = f" `rnnsearch` and {minutes['transformer']} for the transformer" if "transformer" in minutes else " model"
    return (
        f"Chosen for {corpus.pairs:,} sentence pairs. Words that occur at least twice: {source.vocabulary:,} in "
        f"the source and {target.vocabulary:,} in the target.",
        f"Of dev's words {100 * source.unknown:.1f} % in the source and {100 * target.unknown:.1f} % in the target are "
        "not among them.",
        f"Models read {units}. Training takes about {minutes['rnnsearch']} min on one core for each{which}.",
        "More epochs may improve the models.",
    )


def _minutes(corpus: Corpus, model: dict[str, Any]) -> int:
    """Return the minutes in which a model trains on one core."""
    others = ("preset", "candidates", "translate_with", "right_to_left", "backward")
    request = TrainingRequest(model["preset"], settings={key: model[key] for key in model if key not in others})
    source, target = (TextSize(corpus.pairs, side.words, side.vocabulary) for side in (corpus.source, corpus.target))
    part = corpus.dev / corpus.pairs
    return max(1, round(training_seconds(request, (source, target), (source.part(part), target.part(part))) / 60))
