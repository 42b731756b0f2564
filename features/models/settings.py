"""What a model is made of and how it is trained: plain values, readable without torch."""

import dataclasses
from typing import Any, TypeVar, get_type_hints

from moses_io.errors import InputError, nearest


@dataclasses.dataclass(frozen=True)
class Architecture:
    """The parts of an encoder-decoder, each a row of a table, and its sizes.

    Attributes:
        encoder: row of `features.models.encoder.ENCODERS`.
        wiring: where attention sits in the decoder's step, row of `features.models.decoder.WIRINGS`.
        score: row of `features.models.attention.SCORES`.
        terms: rows of `features.models.attention.TERMS`, added inside the score.
        embedding: size E of the word vectors, on both sides.
        hidden: size H of the decoder's state and of each direction of the encoder.
        attention: size A of the hidden layer in which query and keys meet.
        layers: LSTM layers of the decoder; the top one asks the query (Cohn et al. 2016 have 2).
    """

    encoder: str = "bidirectional"
    wiring: str = "attend-first"
    score: str = "additive"
    terms: tuple[str, ...] = ()
    embedding: int = 128
    hidden: int = 256
    attention: int = 128
    layers: int = 1


@dataclasses.dataclass(frozen=True)
class Training:
    """How a model is trained.

    Attributes:
        epochs: passes over the corpus, at most.
        updates: steps of the optimizer, at most; 0 sets no limit.
        batch: sentence pairs a step.
        dropout: on the input of every LSTM layer and before the softmax, never on the recurrence.
        rate: Adam's first step size; it falls linearly to a tenth over the planned updates.
        clip: largest norm of the gradient.
        patience: epochs without a better dev perplexity before training stops.
        frequency: a word seen less often in the corpus is `<unk>`.
        length: pairs with a longer side are left out of training.
        seed: of the weights, the order and the dropout.
    """

    epochs: int = 8
    updates: int = 0
    batch: int = 32
    dropout: float = 0.3
    rate: float = 0.003
    clip: float = 1.0
    patience: int = 3
    frequency: int = 2
    length: int = 80
    seed: int = 1


@dataclasses.dataclass(frozen=True)
class Preset:
    """A named architecture and where it comes from."""

    description: str
    architecture: Architecture


PRESETS: dict[str, Preset] = {
    "rnnsearch": Preset("additive attention (Bahdanau et al. 2015, with the output layer of Cohn)", Architecture()),
    "cohn-align": Preset(
        "additive attention with position, Markov and local fertility terms (Cohn et al. 2016)",
        Architecture(terms=("position", "markov", "fertility")),
    ),
}

_FROM_ZERO = ("updates", "seed")

Settings = TypeVar("Settings", Architecture, Training)


def find_preset(name: str) -> Preset:
    """Return the preset of that name; an unknown one is an `InputError`."""
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}{nearest(name, list(PRESETS))}")
    return PRESETS[name]


def override(architecture: Architecture, training: Training, values: dict[str, Any]) -> tuple[Architecture, Training]:
    """Put `values` (text from a command line, or values of a TOML file) into the two settings.

    Raises:
        InputError: a key that neither has, or a value that is not of the field's type.
    """
    known = changeable()
    for name in values:
        if name not in known:
            raise InputError(f"unknown setting {name!r}{nearest(name, list(known))}")
    sizes = {name for name in values if hasattr(architecture, name)}
    return (
        _replace(architecture, {name: values[name] for name in values if name in sizes}),
        _replace(training, {name: values[name] for name in values if name not in sizes}),
    )


def changeable() -> dict[str, Any]:
    """Return the names that `override` takes, sizes and all of training, with their defaults."""
    sizes = {name: value for name, value in dataclasses.asdict(Architecture()).items() if isinstance(value, int)}
    return sizes | dataclasses.asdict(Training())


def _replace(settings: Settings, values: dict[str, Any]) -> Settings:
    types = get_type_hints(type(settings))
    converted = {}
    for name, value in values.items():
        kind = types[name]
        try:
            converted[name] = kind(str(value))
        except ValueError:
            expected = "a whole number" if kind is int else "a number"
            raise InputError(f"setting {name!r}: expected {expected}, found {value!r}") from None
        smallest = 1 if kind is int and name not in _FROM_ZERO else 0
        largest = 1 if name == "dropout" else float("inf")
        if not smallest <= converted[name] < largest:
            raise InputError(f"setting {name!r}: {value} is out of range")
    return dataclasses.replace(settings, **converted)
