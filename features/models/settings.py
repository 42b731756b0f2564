"""What a model is made of and how it is trained: plain values, readable without torch."""

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from features.models.tables import TABLES
from moses_io.errors import InputError, nearest


@dataclass(frozen=True)
class Architecture:
    """The parts of an encoder-decoder, each a row of a table in `features.models.tables`, and its sizes.

    Attributes:
        cell: recurrent cell of encoder and decoder.
        encoder: `bidirectional`, or `unidirectional` (stacked, its top layer gives the annotations).
        reverse: the source is read last word first; positions keep their own numbers.
        initial: first states of the encoder, `zero` or `learned`.
        sentinels: `<s>` and `</s>` of the source may be attended to; they are always read.
        contextual: word vectors are masked by the whole source sentence (Choi et al. 2018, 4.3).
        wiring: where attention sits in the decoder's step.
        output: what the softmax of `attend-first` reads: `tanh` of state, context and word, or the `state` alone.
        feed: what `attend-after` reads from the step before: `none`, its `output`, or its `context`.
        score: of the query against a key.
        window: positions that a step may look at.
        granularity: one weight an annotation (`word`), or one for each of its dimensions (`fine`).
        terms: what is added inside the additive score.
        objectives: what is added to the log-likelihood in training.
        bias: the layers below the softmax have biases (Luong's have none).
        softmax_bias: the softmax has one (Luong's and Yang's have none).
        embedding: size E of the word vectors, on both sides.
        hidden: size H of the decoder's state and of each direction of the encoder.
        attention: size A of the hidden layer in which query and keys meet.
        layers: recurrent layers of the decoder; the top one asks the query (Cohn et al. 2016 have 2).
        encoder_layers: recurrent layers of the encoder.
        reach: D, source positions on each side of a local window.
        neighbours: k, source positions on each side that the terms on earlier attention see.
        positions: L, source words that the location score can look at.
        memory: size of the memory that the term `memory` keeps for every source position.
        fertility: size of the hidden layer of global fertility; 0 takes H.
    """

    cell: str = "lstm"
    encoder: str = "bidirectional"
    reverse: bool = False
    initial: str = "zero"
    sentinels: bool = True
    contextual: bool = False
    wiring: str = "attend-first"
    output: str = "tanh"
    feed: str = "none"
    score: str = "additive"
    window: str = "global"
    granularity: str = "word"
    terms: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    bias: bool = True
    softmax_bias: bool = True
    embedding: int = 128
    hidden: int = 256
    attention: int = 128
    layers: int = 1
    encoder_layers: int = 1
    reach: int = 10
    neighbours: int = 1
    positions: int = 80
    memory: int = 32
    fertility: int = 0

    @property
    def annotation(self) -> int:
        """Size of an annotation."""
        return 2 * self.hidden if self.encoder == "bidirectional" else self.hidden


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    Attributes:
        epochs: passes over the corpus, at most.
        updates: steps of the optimizer, at most; 0 sets no limit.
        batch: sentence pairs a batch.
        tokens: target tokens a batch with its padding, instead of `batch`; 0 counts sentence pairs.
        accumulate: batches a step of the optimizer.
        optimizer: `adam` or `sgd`.
        rate: first step size.
        schedule: of the step size: `linear` (to a tenth over the planned updates), `constant`, or `halving`.
        hold: epochs before the first halving.
        every: epochs between halvings.
        init: all weights start uniform in ±init; 0 leaves each part its own way.
        clip: largest norm of the gradient.
        dropout: on the input of every recurrent layer and before the softmax, never on the recurrence.
        smoothing: share of the probability that label smoothing spreads over all words.
        gamma: weight of the trace bonus where both directions train together.
        average: checkpoints, one an epoch and the last ones, whose average is the model if it is better on dev.
        patience: epochs without a better dev perplexity before training stops.
        words: size of the vocabularies, the most frequent words; 0 sets no limit.
        frequency: a word seen less often in the corpus is `<unk>`.
        bpe: pieces that sentencepiece learns for each side; 0 leaves words whole.
        length: pairs with a side of more words are left out of training.
        bfloat16: reckon in bfloat16 where that is safe; on a GPU only.
        seed: of the weights, the order and the dropout.
    """

    epochs: int = 8
    updates: int = 0
    batch: int = 32
    tokens: int = 0
    accumulate: int = 1
    optimizer: str = "adam"
    rate: float = 0.003
    schedule: str = "linear"
    hold: int = 5
    every: int = 1
    init: float = 0.0
    clip: float = 1.0
    dropout: float = 0.3
    smoothing: float = 0.0
    gamma: float = 1.0
    average: int = 0
    patience: int = 3
    words: int = 0
    frequency: int = 2
    bpe: int = 0
    length: int = 80
    bfloat16: bool = False
    seed: int = 1


_FROM_ZERO = {"updates", "tokens", "hold", "words", "bpe", "average", "neighbours", "fertility", "seed"}
_LIMITS = {"dropout": 1, "smoothing": 1, "embedding": 2**16, "hidden": 2**16, "attention": 2**16, "memory": 2**16}
CHOICES = {name: tuple(rows) for name, rows in TABLES.items()} | {
    "initial": ("zero", "learned"),
    "output": ("tanh", "state"),
    "feed": ("none", "output", "context"),
    "granularity": ("word", "fine"),
}

Settings = TypeVar("Settings", Architecture, Training)


def override(architecture: Architecture, training: Training, values: dict[str, Any]) -> tuple[Architecture, Training]:
    """Put `values` (text from a command line, or values of a TOML file) into the two settings.

    Raises:
        InputError: a key that neither has, a value that is not of the field's type, or parts that do not go together.
    """
    known = dataclasses.asdict(architecture) | dataclasses.asdict(training)
    for name in values:
        if name not in known:
            raise InputError(f"unknown setting {name!r}{nearest(name, list(known))}")
    parts = {field.name for field in dataclasses.fields(Architecture)}
    architecture = _replace(architecture, {name: values[name] for name in values if name in parts})
    check(architecture)
    return architecture, _replace(training, {name: values[name] for name in values if name not in parts})


def check(architecture: Architecture) -> None:
    """Refuse parts that do not go together, with the reason."""
    a = architecture
    attends, first = a.wiring != "none", a.wiring == "attend-first"
    additive, bidirectional = a.score == "additive", a.encoder == "bidirectional"
    parts = a.terms or a.objectives or a.window != "global" or a.granularity != "word" or not additive
    rules = (
        (attends or not parts, "wiring 'none' has no attention for scores, terms, objectives, windows or granularity"),
        (additive or not a.terms, f"terms are added inside the additive score, not inside {a.score!r}"),
        (additive or a.granularity == "word", "granularity 'fine' needs the additive score"),
        (
            a.score != "dot" or a.annotation == a.hidden,
            "score 'dot' needs queries and annotations of one size: take encoder=unidirectional, or score=general",
        ),
        (a.score != "location" or a.window == "global", "score 'location' chooses among all positions: window=global"),
        (a.wiring == "attend-after" or a.feed == "none", "only wiring 'attend-after' feeds its output or context"),
        (first or a.output == "tanh", "only wiring 'attend-first' can put the softmax on the state"),
        (not (a.reverse and bidirectional), "a bidirectional encoder reads both ways; reverse is for others"),
        (
            bidirectional or a.layers == a.encoder_layers,
            "a unidirectional encoder hands its state over layer by layer: layers and encoder_layers must be equal",
        ),
    )
    for holds, reason in rules:
        if not holds:
            raise InputError(reason)


def check_rows(architecture: Architecture, training: Training, right_to_left: bool) -> None:
    """Refuse a model whose rows of attention are not those of its target's words, one after the other."""
    if right_to_left or training.bpe or architecture.wiring != "attend-first":
        raise InputError(
            "expected a model on words, from left to right, with wiring 'attend-first', whose attention belongs to its "
            "words"
        )


def _replace(settings: Settings, values: dict[str, Any]) -> Settings:
    types = get_type_hints(type(settings))
    return dataclasses.replace(settings, **{name: _convert(name, types[name], value) for name, value in values.items()})


def _convert(name: str, kind: Any, value: Any) -> Any:
    """Read one value, text or of a TOML file."""
    if kind is bool:
        return _chosen(name, str(value).lower(), ("false", "true")) == "true"
    if kind is str:
        return _chosen(name, str(value), CHOICES[name])
    if kind in (int, float):
        return _number(name, kind, value)
    items = value if isinstance(value, list) else [item for item in str(value).split(",") if item]
    for number, item in enumerate(items):
        _chosen(name, str(item), CHOICES[name])
        if item in items[:number]:
            raise InputError(f"setting {name!r}: {item!r} stands there twice")
    return tuple(items)


def _chosen(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InputError(f"setting {name!r}: unknown value {value!r}; known are {', '.join(choices)}")
    return value


def _number(name: str, kind: type[int] | type[float], value: Any) -> int | float:
    try:
        number = kind(str(value))
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise InputError(f"setting {name!r}: expected {expected}, found {value!r}") from None
    smallest = 1 if kind is int and name not in _FROM_ZERO else 0
    if not smallest <= number < _LIMITS.get(name, 2**31) or (name == "clip" and number == 0):
        raise InputError(f"setting {name!r}: {value} is out of range")
    return number
