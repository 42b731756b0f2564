"""Models and features for an experiment that names none, chosen by size and vocabulary of its corpus."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from features.models.config import DEV_FOLDS
from features.models.settings import Architecture, Training
from rerank.experiment.corpus import Corpus

MODELS = ("left-to-right", "right-to-left", "right-to-left-2", "backward", "left-to-right-2")
"""Names of the models, in the order in which they are added.

Models whose names end in 2 have the preset `SECOND`.
"""

FORWARD, BACKWARD, LANGUAGE_MODEL = MODELS[0], "backward", "language-model"
"""Names of the first forward model, of the backward model, and of the model of monolingual text."""

LSTM: dict[str, Any] = {"hidden_size": 256, "embedding_size": 128, "dropout": 0.1}
"""Settings of the language model if its text is not small."""

EPOCHS, WORDS = 4, 4_000_000
"""Epochs after which another model helps more, and target words that are enough on large corpora."""

MAX_EPOCHS = 12
"""Maximum epochs on larger corpora."""

STEP = 100_000
"""Target words by which a training is made longer, at most an epoch."""

SMALL_STEPS = 4
"""Steps of the longest training on a small corpus."""

SMALL_EPOCHS = 8
"""Minimum epochs of the longest training on a small corpus."""

ROUNDING = 1e-6
"""Maximum rounding error of a number of epochs."""

MIN_UPDATES = 1_500
"""Minimum updates of `EPOCHS` epochs. With fewer the corpus is small, and models have the settings `SMALL`."""

SMALL: dict[str, Any] = {
    "batch_size": 16,
    "hidden_size": 160,
    "dropout": 0.3,
    "word_dropout": 0.1,
    "learning_rate": 0.004,
}
"""Settings of a model on a small corpus."""

MAX_FINE_TUNING_EPOCHS, MIN_DEV = 3, 50
"""Maximum epochs of fine-tuning on dev, and the minimum sentences of dev for it.

Only a `SMALL` training with many unknown words is fine-tuned.
"""

LARGE: dict[str, Any] = {"tied_softmax": True, "bfloat16": True}
"""Settings of a model on a larger corpus."""

USUAL_SIZE = Architecture().hidden_size
"""Usual `hidden_size` of networks on larger corpora."""

SIZES = {USUAL_SIZE: 0, 512: 1_000_000, 1_024: 4_000_000}
"""`hidden_size` of networks, with the minimum target words of an epoch for each. These numbers are estimates."""

REDUCED_SIZE = 160
"""`hidden_size` of networks if those of the usual size would read fewer than `MIN_WORDS` target words in training."""

MIN_WORDS = 1_200_000
"""Minimum target words of a training, with all epochs, for networks of the usual size. This number is an estimate."""

FIRST, SECOND = "attend-after", "gnmt"
"""Presets of the first and of the second model of a direction.

The second model has another architecture and therefore makes other errors.
"""

SHORT_EPOCHS = 5
"""Epochs below which a training on a larger corpus is short."""

SHORT_DROPOUT = 0.15
"""Dropout of short trainings."""

FEW_UPDATES: dict[str, Any] = {"batch_size": 16, "learning_rate": 0.005}
"""Settings of trainings that read at most `MAX_PAIRS` pairs, and of networks of the size `REDUCED_SIZE`."""

MAX_PAIRS = 500_000
"""Maximum sentence pairs of a training, with all epochs, that has the settings `FEW_UPDATES`. This is an estimate."""

CANDIDATES, MIN_PAIRS_MERGING, MAX_UNKNOWN_MERGING = 10, 20_000, 0.06
"""Translations per model that are added to the lists, with minimum sentence pairs and maximum unknown words for that.

Both limits only apply if more words of dev than `MAX_UNKNOWN` are unknown.
"""

MERGED_VALUES, ALONE_VALUES, OTHER_VALUES = "logprob,added", "logprob,entropy", "logprob"
"""Values that features read from forward models with added candidates, without them, and from other models."""

SHORTLIST = 30
"""Candidates of a sentence in a shortlist. A run that compares sizes expects this size."""

LABELS = {
    "left-to-right": "NMTltr",
    "right-to-left": "NMTrtl",
    "right-to-left-2": "NMTrtl2",
    "left-to-right-2": "NMTltr2",
    BACKWARD: "NMTback",
    LANGUAGE_MODEL: "NLM",
}
"""Labels of the features of all models.

The feature of the backward model takes longer than all others, so only a shortlist gets it.
"""

CONSENSUS = "Consensus"
"""Label of the consensus feature, which every plan has."""

MERGED_COMMENT = ("Models add translations to the lists. Without `candidates` and `added` the lists are Moses' own.",)
FINE_TUNED_COMMENT = (
    "Training ends with fine-tuning on dev (`fine_tuning_epochs`). Each fold of dev is scored by a model that was not "
    "tuned on it.",
)


@dataclass(frozen=True)
class Recipe:
    """Tables of an experiment file.

    Attributes:
        models: the table `[models]`.
        features: the table `[features]`.
        comments: comment lines that describe the corpus and the models.
        shortlist: the table `[shortlist]`, or empty if there is none.
        report: the table `[report]`, or empty if there is none.
        monolingual: whether models also train on the monolingual text of the experiment.
    """

    models: dict[str, dict[str, Any]]
    features: dict[str, str]
    comments: tuple[str, ...]
    shortlist: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    monolingual: bool = False

    @property
    def tables(self) -> dict[str, Any]:
        """The tables of the experiment file by name."""
        tables = {"models": self.models, "features": self.features}
        optional = {"shortlist": self.shortlist, "report": self.report}
        return tables | {name: table for name, table in optional.items() if table}


@dataclass(frozen=True)
class Scope:
    """Optional parts of a run.

    Attributes:
        ablation: whether reports have the contribution of each feature.
        translations: whether models may add translations to the lists.
        whole_lists: whether models other than the backward one score all candidates, instead of a shortlist.
    """

    ablation: bool = True
    translations: bool = True
    whole_lists: bool = True


SCOPES = (
    Scope(),
    Scope(ablation=False),
    Scope(ablation=False, translations=False),
    Scope(ablation=False, translations=False, whole_lists=False),
)
"""Scopes in the order in which time is saved."""


def find_recipe(
    corpus: Corpus, epochs: Mapping[str, float], scope: Scope = SCOPES[0], size: int = USUAL_SIZE
) -> Recipe:
    """Return models, their settings and their features. `docs/lab/choices.md` has the experiments.

    Args:
        corpus: the corpus.
        epochs: epochs of each model, by names of `LABELS`.
        scope: optional parts of the run.
        size: `hidden_size` of networks on larger corpora.
    """
    # The longest trainings begin first. Models that do not translate are the last, as others translate meanwhile.
    others = (BACKWARD, LANGUAGE_MODEL)
    names = sorted(epochs, key=lambda name: (name in others, not name.endswith("-2"), list(LABELS).index(name)))
    adds = scope.translations and _adds_translations(corpus)
    values = dict.fromkeys(LABELS, MERGED_VALUES if adds else ALONE_VALUES) | dict.fromkeys(others, OTHER_VALUES)
    models = {name: _settings(corpus, name, epochs, adds, size) for name in names if name != LANGUAGE_MODEL}
    if LANGUAGE_MODEL in epochs:
        models[LANGUAGE_MODEL] = _language_model(corpus, epochs[LANGUAGE_MODEL], size)
    features = {label: f"neural:{name}[{values[name]}]" for name, label in LABELS.items() if name in models}
    late = [LABELS[name] for name in LABELS if name in models and (name == BACKWARD or not scope.whole_lists)]
    fine_tuned = any("fine_tuning_epochs" in settings for settings in models.values())
    return Recipe(
        models=models,
        features=features | {CONSENSUS: "consensus:chrf"},
        comments=(
            *_corpus_comments(corpus),
            *(MERGED_COMMENT if adds and models else ()),
            *(FINE_TUNED_COMMENT if fine_tuned else ()),
        ),
        shortlist={"features": late, "size": SHORTLIST} if late else {},
        report={} if scope.ablation else {"ablation": False},
        monolingual=LANGUAGE_MODEL in epochs,
    )


def models_of(corpus: Corpus) -> tuple[str, ...]:
    """Return the names of models in the order in which they are added. A language model requires monolingual text."""
    return MODELS if corpus.fault_of_monolingual else (*MODELS, LANGUAGE_MODEL)


def corpus_of(corpus: Corpus, name: str) -> Corpus:
    """Return the corpus of one epoch of a model."""
    return corpus.with_monolingual if name == LANGUAGE_MODEL else corpus


def is_small(corpus: Corpus) -> bool:
    """Return whether the usual epochs have too few updates for the usual batches."""
    return EPOCHS * corpus.pairs < MIN_UPDATES * Training().batch_size


def _words(corpus: Corpus) -> int:
    """Return the target words of an epoch. Each sentence pair adds one `</s>`."""
    return corpus.target.words + corpus.pairs


@dataclass(frozen=True)
class LengthRange:
    """Possible lengths of the training of a model.

    Attributes:
        step: epochs of a step, by which a training is made longer.
        minimum: steps after which another model helps more.
        maximum: maximum steps.
    """

    step: float
    minimum: int
    maximum: int


def find_length_range(corpus: Corpus) -> LengthRange:
    """Return the possible lengths of trainings on a corpus."""
    if is_small(corpus):
        epochs = max(SMALL_EPOCHS, math.ceil(MIN_UPDATES * SMALL["batch_size"] / corpus.pairs))
        return LengthRange(step=epochs / SMALL_STEPS, minimum=SMALL_STEPS // 2, maximum=SMALL_STEPS)
    words = _words(corpus)
    step = min(1.0, STEP / words)
    return LengthRange(
        step=step, minimum=math.ceil(min(EPOCHS, WORDS / words) / step - ROUNDING), maximum=int(MAX_EPOCHS / step)
    )


def sizes_for(corpus: Corpus) -> list[int]:
    """Return the sizes of networks for which a corpus is large enough, the smallest first."""
    return [USUAL_SIZE] if is_small(corpus) else [size for size, words in SIZES.items() if _words(corpus) >= words]


def reads_few_words(corpus: Corpus, epochs: Mapping[str, float]) -> bool:
    """Return whether there is no training on a larger corpus, or too short a one for networks of the usual size."""
    return not is_small(corpus) and _shortest(epochs) * _words(corpus) < MIN_WORDS


def _shortest(epochs: Mapping[str, float]) -> float:
    """Return the epochs of the shortest training of a translation model, or 0."""
    return min((count for name, count in epochs.items() if name != LANGUAGE_MODEL), default=0.0)


def _sized(size: int) -> dict[str, int]:
    """Return the settings of networks of a size. Those of a reduced size have word vectors of the usual size."""
    if size == USUAL_SIZE:
        return {}
    return {"hidden_size": size, "embedding_size": max(Architecture().embedding_size, size // 2)}


def _adds_translations(corpus: Corpus) -> bool:
    """Return whether models add translations to the lists. They must translate well enough to help."""
    unknown = max(corpus.source.unknown, corpus.target.unknown)
    enough = not is_small(corpus) and corpus.pairs >= MIN_PAIRS_MERGING and unknown <= MAX_UNKNOWN_MERGING
    return corpus.is_known or enough


def _settings(corpus: Corpus, name: str, epochs: Mapping[str, float], adds: bool, size: int) -> dict[str, Any]:
    """Return the table of a model. `epochs` are those of all models."""
    second, small = name.endswith("-2"), is_small(corpus)
    sizes = SMALL if small else LARGE | _sized(size) | _short_settings(corpus, epochs, size)
    batches = corpus.pairs / sizes.get("batch_size", Training().batch_size)
    preset = SECOND if second else FIRST
    settings: dict[str, Any] = {"preset": preset, **_length(epochs[name], batches), "lexicon": "bias", **sizes}
    if corpus.subwords:
        settings["bpe"] = corpus.subwords
    order = name.removesuffix("-2")
    if adds and name != BACKWARD:
        settings |= {"translate_with": order} if second and order in epochs else {"candidates": CANDIDATES}
    # Not `adds`: a run that drops the translations after training must not change the settings of the training.
    elif small and not _adds_translations(corpus) and (fine_tuning := _fine_tuning_epochs(corpus, epochs[name])):
        settings["fine_tuning_epochs"] = fine_tuning
    if order == "right-to-left":
        settings["right_to_left"] = True
    return settings | ({"backward": True} if name == BACKWARD else {})


def _short_settings(corpus: Corpus, epochs: Mapping[str, float], size: int) -> dict[str, Any]:
    """Return the settings on a larger corpus that depend on the shortest training of a translation model."""
    shortest = _shortest(epochs)
    few = size == REDUCED_SIZE or shortest * corpus.pairs <= MAX_PAIRS
    short = shortest < SHORT_EPOCHS - ROUNDING
    return (FEW_UPDATES if few else {}) | ({"dropout": SHORT_DROPOUT} if short else {})


def _language_model(corpus: Corpus, epochs: float, size: int) -> dict[str, Any]:
    """Return the table of the language model."""
    read, subwords = corpus_of(corpus, LANGUAGE_MODEL), {"bpe": corpus.subwords} if corpus.subwords else {}
    sizes = SMALL if is_small(read) else LARGE | LSTM | _sized(size)
    batches = read.pairs / sizes.get("batch_size", Training().batch_size)
    return {"preset": "lstm-lm", **_length(epochs, batches), **sizes, **subwords}


def _length(epochs: float, batches: float) -> dict[str, int]:
    """Return the settings `epochs` and, if the last epoch is not whole, `updates`. `batches` are those of an epoch."""
    whole = math.ceil(epochs - ROUNDING)
    if abs(whole - epochs) < ROUNDING:
        return {"epochs": whole}
    return {"epochs": whole, "updates": max(1, int(epochs * batches))}


def _fine_tuning_epochs(corpus: Corpus, epochs: float) -> int:
    """Return the epochs of fine-tuning on dev, 0 for none.

    Fine-tuning runs on all of dev, and again without each fold. Together this takes no longer than the training before.
    """
    if corpus.dev < MIN_DEV:
        return 0
    return min(MAX_FINE_TUNING_EPOCHS, int(epochs * corpus.pairs / ((DEV_FOLDS + 1) * corpus.dev)))


def _corpus_comments(corpus: Corpus) -> tuple[str, ...]:
    """Return comment lines that describe the corpus."""
    source, target = corpus.source, corpus.target
    return (
        f"Chosen for {corpus.pairs:,} sentence pairs. Words that occur at least twice: {source.vocabulary:,} in "
        f"the source and {target.vocabulary:,} in the target.",
        f"Of dev's words {100 * source.unknown:.1f} % in the source and {100 * target.unknown:.1f} % in the target are "
        "not among them.",
    )
