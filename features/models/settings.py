"""Settings of the architecture and of training, as plain values that do not need torch."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from features.models.tables import TABLES, VALUES
from moses_io.files.errors import InputError, nearest


@dataclass(frozen=True)
class Architecture:
    """The parts of an encoder-decoder, which are rows of tables in `features.models.tables`, and its sizes."""

    cell: str = "lstm"  # recurrent cell of encoder and decoder
    encoder: str = "bidirectional"  # or `unidirectional` (annotations come from its top layer), `transformer`
    reverse: bool = False  # read the source from its last word; positions keep their numbers
    initial: str = "zero"  # initial states of the encoder, `zero` or `learned`
    sentinels: bool = True  # attention may go to `<s>` and `</s>` of the source, which are always encoded
    contextual: bool = False  # mask word vectors by the whole source sentence (Choi et al. 2018, 4.3)
    wiring: str = "attend-first"  # position of attention in the decoder's step; or `transformer`, or `none`
    output: str = "tanh"  # input of the softmax of `attend-first`: `tanh` of state, context and word, or `state`
    feed: str = "none"  # input of `attend-after` from the previous step: `none`, its `output`, or its `context`
    score: str = "additive"  # score of a query and a key
    window: str = "global"  # source positions that a step may attend to
    granularity: str = "word"  # one weight for each annotation (`word`), or for each of its dimensions (`fine`)
    terms: tuple[str, ...] = ()  # bias terms of the additive score
    objectives: tuple[str, ...] = ()  # terms added to the log-likelihood in training
    bias: bool = True  # biases in the layers below the softmax (none in Luong et al. 2015)
    softmax_bias: bool = True  # bias in the softmax (none in Luong et al. 2015 and Yang et al. 2017)
    embedding: int = 128  # size E of the word vectors, on both sides
    hidden: int = 256  # size H of the decoder's state and of each direction of the encoder
    attention: int = 128  # size A of the hidden layer that combines query and keys
    layers: int = 1  # layers of the decoder; the top layer is the query (2 layers in Cohn et al. 2016)
    encoder_layers: int = 1  # layers of the encoder
    reach: int = 10  # D, source positions on each side of a local window
    neighbours: int = 1  # k, source positions on each side in the terms on earlier attention
    positions: int = 80  # L, maximum source words for the location score
    memory: int = 32  # size of the memory of each source position in the term `memory`
    fertility: int = 0  # size of the hidden layer of global fertility; 0: H
    tie: bool = False  # share weights of softmax and target word vectors; the softmax input is projected from H to E
    lexicon: str = "none"  # word translation probabilities in the softmax: `none`, as a `bias`, or in a `mixture`
    heads: int = 4  # attention heads of a transformer; H must be a multiple
    feedforward: int = 512  # hidden size of a transformer's feed-forward sublayers

    @property
    def annotation(self) -> int:
        """Size of an annotation, the encoder's output for a source position."""
        return 2 * self.hidden if self.encoder == "bidirectional" else self.hidden


@dataclass(frozen=True)
class Training:
    """Settings of training."""

    epochs: int = 8  # maximum passes over the corpus
    updates: int = 0  # maximum steps of the optimizer; 0: no limit
    batch: int = 32  # sentence pairs in a batch
    tokens: int = 0  # target tokens in a batch with padding, instead of `batch`; 0: use `batch`
    accumulate: int = 1  # batches for each step of the optimizer
    optimizer: str = "adam"  # `adam` or `sgd`
    rate: float = 0.003  # initial learning rate
    schedule: str = "linear"  # of the learning rate: `linear` (to a tenth over all updates), `constant`, or `halving`
    hold: int = 5  # epochs before the first halving
    every: int = 1  # epochs between halvings
    init: float = 0.0  # uniform initial weights in ±init; 0: initialization of each layer
    clip: float = 1.0  # maximum norm of the gradient
    dropout: float = 0.3  # on inputs of recurrent layers, of the softmax, and on outputs of a transformer's sublayers
    smoothing: float = 0.0  # probability that label smoothing distributes over all words
    gamma: float = 1.0  # weight of the trace bonus if both directions are trained together
    average: int = 0  # last checkpoints (one for each epoch) to average; used if better on dev; 0: off
    patience: int = 3  # epochs without a better dev perplexity before early stopping
    words: int = 0  # vocabulary size, the most frequent words; 0: no limit
    frequency: int = 2  # minimum frequency of words in the corpus; rarer words are `<unk>`
    bpe: int = 0  # subwords that sentencepiece learns for each side; 0: whole words
    length: int = 80  # maximum words of a side; longer pairs are not trained on
    bfloat16: bool = False  # multiply in bfloat16 on a GPU, or on a CPU that supports it; weights stay float32
    seed: int = 1  # random seed of initial weights, batch order and dropout
    word_dropout: float = 0.0  # fraction of words, on both sides, whose vectors are dropped
    warmup: int = 0  # updates over which the learning rate rises from 0 to the schedule's rate
    bpe_dropout: float = 0.0  # fraction of subword merges that are dropped, redrawn in each epoch
    rdrop: float = 0.0  # weight of R-drop: divergence of two passes of each batch with different dropout
    adapt: int = 0  # epochs of fine-tuning on dev at the end; kept if better in cross-validation
    guidance: float = 0.0  # weight of guided alignment; falls to 0 over the first half of all updates


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
"""Settings of recurrent networks and their attention, which a transformer does not have."""

Settings = TypeVar("Settings", Architecture, Training)


def override(architecture: Architecture, training: Training, values: dict[str, Any]) -> tuple[Architecture, Training]:
    """Return the settings with some values replaced.

    Args:
        architecture: settings of the architecture.
        training: settings of training.
        values: new values by name, as text of a command line or as values of a TOML file.

    Raises:
        InputError: an unknown setting, a value of the wrong type or out of range, or incompatible settings.
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
    """Raise `InputError` if settings of the architecture are incompatible."""
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
            "score 'dot' needs queries and annotations of one size: use encoder=unidirectional, or score=general",
        ),
        (a.score != "location" or a.window == "global", "score 'location' chooses among all positions: window=global"),
        (a.wiring == "attend-after" or a.feed == "none", "only wiring 'attend-after' feeds its output or context"),
        (first or a.output == "tanh", "only wiring 'attend-first' can put the softmax on the state"),
        (
            a.wiring != "attend-between" or (a.window == "global" and a.granularity == "word" and not a.terms),
            "wiring 'attend-between' attends at all steps at once: window=global, granularity=word, no terms",
        ),
        (a.wiring != "attend-between" or a.layers > 1, "wiring 'attend-between' needs two layers or more"),
        (
            not (a.reverse and bidirectional),
            "a bidirectional encoder reads both directions; reverse is for unidirectional ones",
        ),
        (
            a.encoder != "unidirectional" or a.layers == a.encoder_layers,
            "a unidirectional encoder passes on its state layer by layer: layers and encoder_layers must be equal",
        ),
    )
    for holds, reason in (*_transformer_rules(a), *rules):
        if not holds:
            raise InputError(reason)


def check_training(architecture: Architecture, training: Training) -> None:
    """Raise `InputError` if settings of training are incompatible."""
    if training.bpe_dropout and not training.bpe:
        raise InputError("bpe_dropout omits merges of subwords: it needs bpe")
    if training.rdrop and not (training.dropout or training.word_dropout):
        raise InputError("rdrop compares passes with different dropout: it needs dropout or word_dropout")
    if training.rdrop and (training.guidance or architecture.lexicon != "none"):
        raise InputError("rdrop compares the softmax alone: it cannot be combined with lexicon or guidance")


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
    """Raise `InputError` if a model of this architecture cannot give some of the named values."""
    if "fertility" in names and "fertility" not in architecture.objectives:
        raise InputError("a model without global fertility, which the value fertility needs")
    refused = [name for name in names if name in VALUES and VALUES[name].of_attention]
    if refused and architecture.wiring == "none":
        raise InputError(f"a model without attention, which {', '.join(refused)} needs")


def check_rows(architecture: Architecture, training: Training, right_to_left: bool) -> None:
    """Raise `InputError` unless the rows of attention belong to the target words from left to right.

    With every wiring except `attend-first`, the query for t_j has already read y_{j-1}. Its row of attention may belong
    to either word (Luong et al. 2015, footnote 14).
    """
    if right_to_left or training.bpe or architecture.wiring != "attend-first":
        raise InputError(
            "expected a model on words, from left to right, with wiring 'attend-first', whose attention belongs to its "
            "words"
        )


def rows_ahead(architecture: Architecture) -> int:
    """Return the offset from a target word's step to the step whose attention guided alignment trains: 0 or 1.

    With `attend-after` and a content-based score it is 1: the next step has read the word (Luong et al. 2015, footnote
    14). It is 0 if a lexicon predicts with the row of the word's own step.
    """
    content_based, lexical = architecture.score != "location", architecture.lexicon != "none"
    return int(architecture.wiring == "attend-after" and content_based and not lexical)


def _replace(settings: Settings, values: dict[str, Any]) -> Settings:
    types = get_type_hints(type(settings))
    return dataclasses.replace(settings, **{name: _convert(name, types[name], value) for name, value in values.items()})


def _convert(name: str, kind: Any, value: Any) -> Any:
    """Convert a value, given as text or as a TOML value, to the type of the setting."""
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
            raise InputError(f"setting {name!r}: {item!r} occurs twice")
    return tuple(items)


def _chosen(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InputError(f"setting {name!r}: unknown value {value!r}; known: {', '.join(choices)}")
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
