"""Settings of the architecture and of training, as plain values that do not need torch."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from features.models.tables import TABLES, VALUES
from moses_io.files.errors import InputError, nearest
from moses_io.files.text import number, whole


@dataclass(frozen=True)
class Architecture:
    """The parts of an encoder-decoder, which are rows of tables in `features.models.tables`, and its sizes."""

    cell: str = "lstm"  # recurrent cell of encoder, decoder and the attention term `memory`
    encoder: str = "bidirectional"  # or `unidirectional` (annotations come from its top layer), `transformer`
    reverse_source: bool = False  # read the source from its last word, while positions keep their numbers
    initial_state: str = "zero"  # initial states of the encoder, `zero` or `learned`
    attend_bos_eos: bool = True  # attention may go to `<s>` and `</s>` of the source, which are always encoded
    contextual_embeddings: bool = False  # mask word vectors by the whole source sentence (Choi et al. 2018, 4.3)
    decoder: str = "attend-first"  # position of attention in the decoder's step, or `transformer`, or `no-attention`
    softmax_input: str = "tanh"  # input of the softmax of `attend-first`: `tanh` of state, context and word, or `state`
    input_feeding: str = "none"  # previous step's `output` or `context` as input of `attend-after`, or `none`
    attention_score: str = "additive"  # score of a query and a key
    attention_window: str = "global"  # source positions that a step may attend to
    granularity: str = "word"  # one weight for each annotation (`word`), or for each of its dimensions (`fine`)
    attention_terms: tuple[str, ...] = ()  # bias terms of the additive score
    objectives: tuple[str, ...] = ()  # terms added to the log-likelihood in training
    bias: bool = True  # biases in the layers below the softmax (none in Luong et al. 2015)
    softmax_bias: bool = True  # bias in the softmax (none in Luong et al. 2015 and Yang et al. 2017)
    embedding_size: int = 128  # size E of the word vectors, on both sides
    hidden_size: int = 256  # size H of the decoder's state and of each direction of the encoder
    attention_size: int = 128  # size A of the hidden layer that combines query and keys
    decoder_layers: int = 1  # layers of the decoder, whose top layer is the query (2 layers in Cohn et al. 2016)
    encoder_layers: int = 1  # layers of the encoder
    window_radius: int = 10  # D, source positions on each side of a local window
    term_radius: int = 1  # k, source positions on each side in the terms on earlier attention
    max_positions: int = 80  # L, maximum source words for the location score
    memory_size: int = 32  # size of the memory of each source position in the term `memory`
    fertility_size: int = 0  # size of the hidden layer of global fertility (0: H)
    tied_softmax: bool = False  # softmax shares the target word vectors, and its input is projected from H to E
    language_model: bool = False  # p(target): every source is read as an empty one
    lexicon: str = "none"  # word translation probabilities in the softmax: `none`, as a `bias`, or in a `mixture`
    attention_heads: int = 4  # attention heads of a transformer, of which H must be a multiple
    feedforward_size: int = 512  # hidden size of a transformer's feed-forward sublayers

    @property
    def annotation(self) -> int:
        """Size of an annotation, the encoder's output for a source position."""
        return 2 * self.hidden_size if self.encoder == "bidirectional" else self.hidden_size

    @property
    def attends(self) -> bool:
        """Whether the decoder has attention to source words."""
        return self.decoder != NO_ATTENTION and not self.language_model

    @property
    def recurrent(self) -> bool:
        """Whether encoder and decoder read one token after the other. A transformer does not."""
        return self.encoder != "transformer"

    @property
    def attends_at_once(self) -> bool:
        """Whether `Attention.over` supports this attention: its weights depend on queries and keys only."""
        return self.attention_window == "global" and self.granularity == "word" and not self.attention_terms

    @property
    def runs_at_once(self) -> bool:
        """Whether training computes all steps of the decoder at once, without a loop over them."""
        if self.decoder == "attend-after":
            return self.input_feeding == "none" and self.attends_at_once
        return self.decoder != "attend-first"


@dataclass(frozen=True)
class Training:
    """Settings of training."""

    epochs: int = 8  # maximum passes over the corpus
    updates: int = 0  # maximum steps of the optimizer (0: no limit)
    batch_size: int = 32  # sentence pairs in a batch
    batch_tokens: int = 0  # target tokens in a batch with padding, instead of `batch_size` (0: use `batch_size`)
    gradient_accumulation: int = 1  # batches for each step of the optimizer
    optimizer: str = "adam"  # `adam` or `sgd`
    learning_rate: float = 0.003  # initial learning rate
    schedule: str = "linear"  # of the learning rate: `linear` (to a tenth over all updates), `constant`, or `halving`
    decay_start: int = 5  # epochs before the first halving
    decay_interval: int = 1  # epochs between halvings
    init_range: float = 0.0  # uniform initial weights in ±`init_range` (0: initialization of each layer)
    clip_norm: float = 1.0  # maximum norm of the gradient
    dropout: float = 0.3  # on inputs of recurrent layers and the softmax. Transformer: on word vectors and sublayers
    label_smoothing: float = 0.0  # probability that label smoothing distributes over all words
    agreement_weight: float = 1.0  # weight of the trace bonus if both directions are trained together
    average_checkpoints: int = 0  # last checkpoints (one for each epoch) to average, used if better on dev (0: off)
    patience: int = 3  # epochs without a better dev perplexity before early stopping
    vocabulary_size: int = 0  # vocabulary size, the most frequent words (0: no limit)
    min_frequency: int = 2  # minimum frequency of words in the corpus, rarer words are `<unk>`
    bpe: int = 0  # subwords that sentencepiece learns for each side (0: whole words)
    max_length: int = 80  # maximum words of a side, longer pairs are not trained on
    bfloat16: bool = False  # multiply in bfloat16 on a GPU, or on a CPU that supports it, weights stay float32
    seed: int = 1  # random seed of initial weights, batch order and dropout
    word_dropout: float = 0.0  # fraction of words, on both sides, whose vectors are dropped
    warmup_updates: int = 0  # updates over which the learning rate rises from 0 to the schedule's rate
    bpe_dropout: float = 0.0  # fraction of subword merges that are dropped, redrawn in each epoch
    r_drop: float = 0.0  # weight of R-drop: divergence of two passes of each batch with different dropout
    fine_tuning_epochs: int = 0  # epochs of fine-tuning on dev at the end, kept if better in cross-validation
    upsample: int = 1  # times that each real pair occurs in an epoch that also has synthetic pairs
    tag: bool = True  # synthetic sources begin with the word `<BT>` (Caswell et al. 2019)
    guided_alignment: float = 0.0  # weight of guided alignment, which falls to 0 over the first half of all updates


VOCABULARY = ("bpe", "bpe_dropout", "vocabulary_size", "min_frequency")
"""Settings that determine vocabularies."""

_FROM_ZERO = {
    "updates", "batch_tokens", "decay_start", "vocabulary_size", "bpe", "average_checkpoints", "warmup_updates",
    "fine_tuning_epochs", "term_radius", "fertility_size", "seed",
}  # fmt: skip
_LIMITS = {
    "dropout": 1, "label_smoothing": 1, "word_dropout": 1, "bpe_dropout": 1, "decoder_layers": 2**7,
    "encoder_layers": 2**7, "embedding_size": 2**16, "hidden_size": 2**16, "attention_size": 2**16,
    "memory_size": 2**16, "feedforward_size": 2**16,
}  # fmt: skip
CHOICES = {name: tuple(rows) for name, rows in TABLES.items()} | {
    "initial_state": ("zero", "learned"),
    "softmax_input": ("tanh", "state"),
    "input_feeding": ("none", "output", "context"),
    "granularity": ("word", "fine"),
    "lexicon": ("none", "bias", "mixture"),
}

RENAMED = {
    "reverse": "reverse_source",
    "initial": "initial_state",
    "sentinels": "attend_bos_eos",
    "contextual": "contextual_embeddings",
    "wiring": "decoder",
    "output": "softmax_input",
    "feed": "input_feeding",
    "score": "attention_score",
    "window": "attention_window",
    "terms": "attention_terms",
    "embedding": "embedding_size",
    "hidden": "hidden_size",
    "attention": "attention_size",
    "layers": "decoder_layers",
    "reach": "window_radius",
    "neighbours": "term_radius",
    "positions": "max_positions",
    "memory": "memory_size",
    "fertility": "fertility_size",
    "tie": "tied_softmax",
    "heads": "attention_heads",
    "feedforward": "feedforward_size",
    "batch": "batch_size",
    "tokens": "batch_tokens",
    "accumulate": "gradient_accumulation",
    "rate": "learning_rate",
    "hold": "decay_start",
    "every": "decay_interval",
    "init": "init_range",
    "clip": "clip_norm",
    "smoothing": "label_smoothing",
    "gamma": "agreement_weight",
    "average": "average_checkpoints",
    "words": "vocabulary_size",
    "frequency": "min_frequency",
    "length": "max_length",
    "warmup": "warmup_updates",
    "rdrop": "r_drop",
    "adapt": "fine_tuning_epochs",
    "guidance": "guided_alignment",
}
"""Former settings with their present names, for model folders of format 2 and for messages."""

NO_ATTENTION = "no-attention"
"""Value of `decoder` without attention, which was "none" in model folders of format 2."""

_WITHOUT_TRANSFORMER = (
    "cell", "reverse_source", "initial_state", "contextual_embeddings", "softmax_input", "input_feeding",
    "attention_score", "attention_window", "granularity", "attention_terms", "bias",
)  # fmt: skip
"""Settings of recurrent networks and their attention, which a transformer does not have."""

Settings = TypeVar("Settings", Architecture, Training)

Rules = tuple[tuple[bool, str], ...]
"""Conditions that settings must meet, each with the message if it is not met."""


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
            hint = f". It is now {RENAMED[name]!r}" if name in RENAMED else nearest(name, list(known))
            raise InputError(f"unknown setting {name!r}{hint}")
    parts = {field.name for field in dataclasses.fields(Architecture)}
    architecture = _replace(architecture, {name: values[name] for name in values if name in parts})
    check(architecture)
    training = _replace(training, {name: values[name] for name in values if name not in parts})
    check_training(architecture, training)
    return architecture, training


def check(architecture: Architecture) -> None:
    """Raise `InputError` if settings of the architecture are incompatible."""
    rules = (_language_model_rules, _transformer_rules, _attention_rules, _decoder_rules, _encoder_rules)
    for holds, reason in (rule for each in rules for rule in each(architecture)):
        if not holds:
            raise InputError(reason)


def _language_model_rules(a: Architecture) -> Rules:
    return (
        (
            not a.language_model or a.decoder in (NO_ATTENTION, "transformer"),
            "language_model needs decoder=no-attention or transformer",
        ),
        (
            not (a.language_model and (a.objectives or a.lexicon != "none" or a.contextual_embeddings)),
            "a language model has no source for objectives, a lexicon or contextual_embeddings",
        ),
    )


def _attention_rules(a: Architecture) -> Rules:
    additive = a.attention_score == "additive"
    return (
        (
            additive or not a.attention_terms,
            f"attention_terms need attention_score=additive, not {a.attention_score!r}",
        ),
        (additive or a.granularity == "word", "granularity 'fine' needs attention_score=additive"),
        (
            a.attention_score != "dot" or a.annotation == a.hidden_size,
            "attention_score 'dot' needs equal sizes of queries and annotations: use encoder=unidirectional, or "
            "attention_score=general",
        ),
        (
            a.attention_score != "location" or a.attention_window == "global",
            "attention_score 'location' needs attention_window=global",
        ),
    )


def _decoder_rules(a: Architecture) -> Rules:
    local_or_fine = a.attention_window != "global" or a.granularity != "word"
    attention_parts = a.attention_terms or local_or_fine or a.attention_score != "additive"
    between = a.decoder == "attend-between"
    return (
        (
            a.decoder != NO_ATTENTION or not (attention_parts or a.objectives or a.lexicon != "none"),
            "decoder 'no-attention' has no scores, terms, objectives, windows, granularity or lexicon",
        ),
        (a.decoder == "attend-after" or a.input_feeding == "none", "input_feeding needs decoder 'attend-after'"),
        (
            a.decoder == "attend-first" or a.softmax_input == "tanh",
            "softmax_input 'state' needs decoder 'attend-first'",
        ),
        (
            not between or not (local_or_fine or a.attention_terms),
            "decoder 'attend-between' needs attention_window=global, granularity=word and no attention_terms",
        ),
        (not between or a.decoder_layers > 1, "decoder 'attend-between' needs decoder_layers=2 or more"),
    )


def _encoder_rules(a: Architecture) -> Rules:
    return (
        (
            not a.reverse_source or a.encoder != "bidirectional",
            "reverse_source needs encoder=unidirectional. A bidirectional encoder reads both directions",
        ),
        (
            a.encoder != "unidirectional" or a.decoder_layers == a.encoder_layers,
            "encoder 'unidirectional' needs equal decoder_layers and encoder_layers: each layer passes on its state",
        ),
    )


def check_training(architecture: Architecture, training: Training) -> None:
    """Raise `InputError` if settings of training are incompatible."""
    if training.bpe_dropout and not training.bpe:
        raise InputError("bpe_dropout needs bpe")
    if training.r_drop and not (training.dropout or training.word_dropout):
        raise InputError("r_drop compares passes with different dropout: it needs dropout or word_dropout")
    if training.r_drop and (training.guided_alignment or architecture.lexicon != "none"):
        raise InputError("r_drop cannot be combined with lexicon or guided_alignment")


def _transformer_rules(a: Architecture) -> Rules:
    if "transformer" not in (a.encoder, a.decoder):
        return ()
    changed = [name for name in _WITHOUT_TRANSFORMER if getattr(a, name) != getattr(Architecture, name)]
    return (
        (a.encoder == a.decoder, "encoder 'transformer' and decoder 'transformer' need each other"),
        (not changed, f"a transformer does not use {', '.join(changed)}"),
        (a.embedding_size == a.hidden_size, "a transformer needs equal embedding_size and hidden_size"),
        (
            a.hidden_size % a.attention_heads == 0,
            "a transformer needs a hidden_size that is a multiple of attention_heads",
        ),
    )


def check_values(names: Sequence[str], architecture: Architecture) -> None:
    """Raise `InputError` if a model of this architecture cannot give some of the named values."""
    if "fertility" in names and "fertility" not in architecture.objectives:
        raise InputError("a model without global fertility, which the value fertility needs")
    refused = [name for name in names if name in VALUES and VALUES[name].of_attention]
    if refused and not architecture.attends:
        raise InputError(f"a model without attention, which {', '.join(refused)} needs")


def check_rows(architecture: Architecture, training: Training, right_to_left: bool) -> None:
    """Raise `InputError` unless the rows of attention belong to the target words from left to right.

    With every decoder except `attend-first`, the query for t_j has already read y_{j-1}. Its row of attention may
    belong to either word (Luong et al. 2015, footnote 14).
    """
    if right_to_left or training.bpe or architecture.decoder != "attend-first":
        raise InputError(
            "expected a left-to-right model on words with decoder 'attend-first', so that attention belongs to words"
        )


def rows_ahead(architecture: Architecture) -> int:
    """Return the offset from a target word's step to the step whose attention guided alignment trains: 0 or 1.

    With `attend-after` and a content-based score it is 1: the next step has read the word (Luong et al. 2015, footnote
    14). It is 0 if a lexicon predicts with the row of the word's own step.
    """
    content_based, lexical = architecture.attention_score != "location", architecture.lexicon != "none"
    return int(architecture.decoder == "attend-after" and content_based and not lexical)


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
    for index, item in enumerate(items):
        _chosen(name, str(item), CHOICES[name])
        if item in items[:index]:
            raise InputError(f"setting {name!r}: {item!r} occurs twice")
    return tuple(items)


def _chosen(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InputError(f"setting {name!r}: unknown value {value!r}. Known: {', '.join(choices)}")
    return value


def _number(name: str, kind: type[int] | type[float], value: Any) -> int | float:
    text = str(value)
    parsed = number(text) if kind is float else whole(text.removeprefix("-"))
    if parsed is None:
        expected = "a whole number" if kind is int else "a number"
        raise InputError(f"setting {name!r}: expected {expected}, found {value!r}")
    if kind is int and text.startswith("-"):
        parsed = -parsed
    smallest = 1 if kind is int and name not in _FROM_ZERO else 0
    if not smallest <= parsed < _LIMITS.get(name, 2**31) or (name == "clip_norm" and parsed == 0):
        raise InputError(f"setting {name!r}: {value} is out of range")
    return parsed
