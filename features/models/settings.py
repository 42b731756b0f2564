"""What a model is made of and how it is trained: plain values, readable without torch."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from features.models.tables import TABLES, VALUES
from moses_io.files.errors import InputError, nearest


@dataclass(frozen=True)
class Architecture:
    """The parts of an encoder-decoder, each a row of a table in `features.models.tables`, and its sizes."""

    cell: str = "lstm"  # recurrent cell of encoder and decoder
    encoder: str = "bidirectional"  # `unidirectional`: stacked, its top layer gives the annotations; or `transformer`
    reverse: bool = False  # the source is read last word first; positions keep their own numbers
    initial: str = "zero"  # first states of the encoder, `zero` or `learned`
    sentinels: bool = True  # `<s>` and `</s>` of the source may be attended to; they are always read
    contextual: bool = False  # word vectors are masked by the whole source sentence (Choi et al. 2018, 4.3)
    wiring: str = "attend-first"  # where attention sits in the decoder's step; or `transformer`, or `none`
    output: str = "tanh"  # the softmax of `attend-first` reads `tanh` of state, context and word, or the `state` alone
    feed: str = "none"  # what `attend-after` reads from the step before: `none`, its `output`, or its `context`
    score: str = "additive"  # how a query is scored against a key
    window: str = "global"  # source positions that a step may look at
    granularity: str = "word"  # one weight an annotation (`word`), or one for each of its dimensions (`fine`)
    terms: tuple[str, ...] = ()  # what is added inside the additive score
    objectives: tuple[str, ...] = ()  # what is added to the log-likelihood in training
    bias: bool = True  # the layers below the softmax have biases (Luong's have none)
    softmax_bias: bool = True  # the softmax has one (Luong's and Yang's have none)
    embedding: int = 128  # size E of the word vectors, on both sides
    hidden: int = 256  # size H of the decoder's state and of each direction of the encoder
    attention: int = 128  # size A of the hidden layer in which query and keys meet
    layers: int = 1  # layers of the decoder; the top one asks the query (Cohn et al. 2016 have 2)
    encoder_layers: int = 1  # layers of the encoder
    reach: int = 10  # D, source positions on each side of a local window
    neighbours: int = 1  # k, source positions on each side that the terms on earlier attention see
    positions: int = 80  # L, source words that the location score can look at
    memory: int = 32  # size of the memory that the term `memory` keeps for every source position
    fertility: int = 0  # size of the hidden layer of global fertility; 0 takes H
    tie: bool = False  # the softmax's weights are the target's word vectors; what it reads is projected from H to E
    lexicon: str = "none"  # word translation probabilities in the softmax: `none`, as a `bias`, or in a `mixture`
    heads: int = 4  # heads of a transformer's attention, into which its size H is divided
    feedforward: int = 512  # size of the hidden layer of a transformer's feed-forward sublayers

    @property
    def annotation(self) -> int:
        """Size of an annotation."""
        return 2 * self.hidden if self.encoder == "bidirectional" else self.hidden


@dataclass(frozen=True)
class Training:
    """How a model is trained."""

    epochs: int = 8  # passes over the corpus, at most
    updates: int = 0  # steps of the optimizer, at most; 0 sets no limit
    batch: int = 32  # sentence pairs a batch
    tokens: int = 0  # target tokens a batch with its padding, instead of `batch`; 0 counts sentence pairs
    accumulate: int = 1  # batches a step of the optimizer
    optimizer: str = "adam"  # `adam` or `sgd`
    rate: float = 0.003  # first step size
    schedule: str = "linear"  # of the step size: `linear` (to a tenth over all updates), `constant`, or `halving`
    hold: int = 5  # epochs before the first halving
    every: int = 1  # epochs between halvings
    init: float = 0.0  # all weights start uniform in ±init; 0 leaves each part its own way
    clip: float = 1.0  # largest norm of the gradient
    dropout: float = 0.3  # on what recurrent layers read, before the softmax, on what a transformer's sublayers give
    smoothing: float = 0.0  # share of the probability that label smoothing spreads over all words
    gamma: float = 1.0  # weight of the trace bonus where both directions train together
    average: int = 0  # checkpoints, one an epoch and the last ones, whose average is the model if it is better on dev
    patience: int = 3  # epochs without a better dev perplexity before training stops
    words: int = 0  # size of the vocabularies, the most frequent words; 0 sets no limit
    frequency: int = 2  # a word seen less often in the corpus is `<unk>`
    bpe: int = 0  # pieces that sentencepiece learns for each side; 0 leaves words whole
    length: int = 80  # pairs with a side of more words are left out of training
    bfloat16: bool = False  # multiply in bfloat16, on a GPU and on processors that do so faster; weights are float32
    seed: int = 1  # of the weights, the order and the dropout
    word_dropout: float = 0.0  # share of the words, on both sides, whose whole vector is left out
    warmup: int = 0  # updates over which the step size rises from 0 to what `schedule` says
    bpe_dropout: float = 0.0  # share of the merges of pieces that each epoch of training leaves out
    rdrop: float = 0.0  # weight of how far two passes with different dropout are apart; each batch passes twice
    adapt: int = 0  # epochs on dev at the end, kept if they help with what of dev they leave out
    guidance: float = 0.0  # weight of attention's cross-entropy with links; falls to 0 over half of all updates


_FROM_ZERO = {
    "updates", "tokens", "hold", "words", "bpe", "average", "warmup", "adapt", "neighbours", "fertility", "seed",
}  # fmt: skip
_LIMITS = {
    "dropout": 1, "smoothing": 1, "word_dropout": 1, "bpe_dropout": 1, "layers": 2**7, "encoder_layers": 2**7,
    "embedding": 2**16, "hidden": 2**16, "attention": 2**16, "memory": 2**16,
    "feedforward": 2**16,
}  # fmt: skip
CHOICES = {name: tuple(rows) for name, rows in TABLES.items()} | {
    "initial": ("zero", "learned"),
    "output": ("tanh", "state"),
    "feed": ("none", "output", "context"),
    "granularity": ("word", "fine"),
    "lexicon": ("none", "bias", "mixture"),
}

_WITHOUT_TRANSFORMER = (
    "cell", "reverse", "initial", "contextual", "output", "feed", "score", "window", "granularity", "terms", "bias",
)  # fmt: skip
"""Settings of recurrent networks and of their attention."""

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
    training = _replace(training, {name: values[name] for name in values if name not in parts})
    check_training(architecture, training)
    return architecture, training


def check(architecture: Architecture) -> None:
    """Refuse parts that do not go together, with the reason."""
    a = architecture
    attends, first = a.wiring != "none", a.wiring == "attend-first"
    additive, bidirectional = a.score == "additive", a.encoder == "bidirectional"
    parts = a.terms or a.objectives or a.window != "global" or a.granularity != "word" or not additive
    parts = parts or a.lexicon != "none"
    rules = (
        (
            attends or not parts,
            "wiring 'none' has no attention for scores, terms, objectives, windows, granularity or lexicon",
        ),
        (additive or not a.terms, f"terms are added inside the additive score, not inside {a.score!r}"),
        (additive or a.granularity == "word", "granularity 'fine' needs the additive score"),
        (
            a.score != "dot" or a.annotation == a.hidden,
            "score 'dot' needs queries and annotations of one size: take encoder=unidirectional, or score=general",
        ),
        (a.score != "location" or a.window == "global", "score 'location' chooses among all positions: window=global"),
        (a.wiring == "attend-after" or a.feed == "none", "only wiring 'attend-after' feeds its output or context"),
        (first or a.output == "tanh", "only wiring 'attend-first' can put the softmax on the state"),
        (
            a.wiring != "attend-between" or (a.window == "global" and a.granularity == "word" and not a.terms),
            "wiring 'attend-between' attends at all steps at once: window=global, granularity=word, no terms",
        ),
        (a.wiring != "attend-between" or a.layers > 1, "wiring 'attend-between' needs two layers or more"),
        (not (a.reverse and bidirectional), "a bidirectional encoder reads both ways; reverse is for others"),
        (
            a.encoder != "unidirectional" or a.layers == a.encoder_layers,
            "a unidirectional encoder hands its state over layer by layer: layers and encoder_layers must be equal",
        ),
    )
    for holds, reason in (*_transformer_rules(a), *rules):
        if not holds:
            raise InputError(reason)


def check_training(architecture: Architecture, training: Training) -> None:
    """Refuse settings of training that do not go together, with the reason."""
    if training.bpe_dropout and not training.bpe:
        raise InputError("bpe_dropout leaves out merges of pieces: it needs bpe")
    if training.rdrop and not (training.dropout or training.word_dropout):
        raise InputError("rdrop compares passes with different dropout: it needs dropout or word_dropout")
    if training.rdrop and (training.guidance or architecture.lexicon != "none"):
        raise InputError("rdrop compares what the softmax says alone: it goes without lexicon and guidance")


def _transformer_rules(a: Architecture) -> tuple[tuple[bool, str], ...]:
    if "transformer" not in (a.encoder, a.wiring):
        return ()
    changed = [name for name in _WITHOUT_TRANSFORMER if getattr(a, name) != getattr(Architecture, name)]
    return (
        (a.encoder == a.wiring, "encoder 'transformer' and wiring 'transformer' need each other"),
        (not changed, f"a transformer has no part that the setting {', '.join(changed)} could change"),
        (a.embedding == a.hidden, "a transformer's word vectors are as large as its layers: embedding=hidden"),
        (a.hidden % a.heads == 0, "a transformer's size is divided into heads: hidden must be a multiple of heads"),
    )


def check_values(names: Sequence[str], architecture: Architecture) -> None:
    """Refuse values of candidates that no model of the architecture can give, with the reason."""
    if "fertility" in names and "fertility" not in architecture.objectives:
        raise InputError("a model without global fertility, which the value fertility needs")
    refused = [name for name in names if name in VALUES and VALUES[name].of_attention]
    if refused and architecture.wiring == "none":
        raise InputError(f"a model without attention, which {', '.join(refused)} needs")


def check_rows(architecture: Architecture, training: Training, right_to_left: bool) -> None:
    """Refuse a model whose rows of attention are not those of its target's words, one after the other.

    With every wiring but `attend-first` a query has read y_{j-1} before it asks for t_j, so that its row may tell of
    either word (Luong et al. 2015, footnote 14).
    """
    if right_to_left or training.bpe or architecture.wiring != "attend-first":
        raise InputError(
            "expected a model on words, from left to right, with wiring 'attend-first', whose attention belongs to its "
            "words"
        )


def rows_ahead(architecture: Architecture) -> int:
    """Return how many steps after its own a target word has the row of attention that guidance trains: 0 or 1.

    With a content-based score after the step that is the next one, which has read the word (Luong et al. 2015, footnote
    14), unless a lexicon predicts with the step's own row.
    """
    content_based, lexical = architecture.score != "location", architecture.lexicon != "none"
    return int(architecture.wiring == "attend-after" and content_based and not lexical)


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
