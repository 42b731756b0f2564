"""Small float64 networks for all architectures: every row of every table of `features.models.tables`.

A row that is added to a table is included automatically.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from features.models.config import ModelConfig
from features.models.folder import Model
from features.models.network.model import EncoderDecoder
from features.models.presets import PRESETS
from features.models.settings import Architecture, Training, override
from features.models.tables import TABLES
from features.models.vocabulary import BEGIN, END, Vocabulary
from features.translation_table import Translations

SMALL = {
    "embedding_size": 4,
    "hidden_size": 5,
    "attention_size": 6,
    "memory_size": 3,
    "window_radius": 2,
    "max_positions": 4,
}
STACKED = {"decoder_layers": 2, "encoder_layers": 2}
TRANSFORMER = {"embedding_size": 6, "hidden_size": 6, "attention_heads": 2, "feedforward_size": 5, **STACKED}

OTHER_ARCHITECTURES: dict[str, dict[str, Any]] = {
    "gru": {"cell": "gru", **STACKED},
    "rnn": {
        "cell": "rnn",
        "attention_terms": ["position", "markov", "fertility", "memory"],
        "term_radius": 2,
        **STACKED,
    },
    "gru-encdec": {"cell": "gru", "encoder": "unidirectional", "decoder": "no-attention", **STACKED},
    "rnn-encdec": {"cell": "rnn", "encoder": "unidirectional", "decoder": "no-attention", "reverse_source": True},
    "encdec-bidirectional": {"decoder": "no-attention", "decoder_layers": 2},
    "after-with-terms": {
        "decoder": "attend-after",
        "attention_terms": ["position", "fertility", "memory", "previous-word"],
        "cell": "gru",
    },
    "learned-initial-gru": {"initial_state": "learned", "cell": "gru", **STACKED},
    "learned-initial-reversed": {
        "initial_state": "learned",
        "encoder": "unidirectional",
        "decoder": "no-attention",
        "reverse_source": True,
        **STACKED,
    },
    "after-stacked": {"decoder": "attend-after", "encoder": "unidirectional", "input_feeding": "output", **STACKED},
    "first-location-words": {"attention_score": "location", "attend_bos_eos": False},
    "first-general-local-p": {
        "attention_score": "general",
        "attention_window": "local-p",
        "encoder": "unidirectional",
        "reverse_source": True,
    },
    "fine-local-m": {
        "granularity": "fine",
        "attention_window": "local-m",
        "attention_terms": ["markov", "memory"],
        "term_radius": 0,
    },
    "fine-local-p": {"granularity": "fine", "attention_window": "local-p", "attend_bos_eos": False},
    "tied": {"tied_softmax": True},
    "tied-encdec-contextual": {
        "tied_softmax": True,
        "decoder": "no-attention",
        "softmax_bias": False,
        "contextual_embeddings": True,
    },
    "lexicon": {"lexicon": "bias"},
    "lexicon-after-fine": {
        "lexicon": "bias",
        "decoder": "attend-after",
        "granularity": "fine",
        "attend_bos_eos": False,
    },
    "lexicon-mixture": {"lexicon": "mixture"},
    "lexicon-mixture-after": {
        "lexicon": "mixture",
        "decoder": "attend-after",
        "attention_window": "local-m",
        "input_feeding": "context",
    },
    "lexicon-local-p": {"lexicon": "bias", "attention_window": "local-p", "softmax_bias": False},
    "between-gru": {
        "decoder": "attend-between",
        "cell": "gru",
        "decoder_layers": 3,
        "objectives": ["coverage", "fertility"],
        "attend_bos_eos": False,
    },
    "between-rnn-dot": {
        "decoder": "attend-between",
        "cell": "rnn",
        "attention_score": "dot",
        "encoder": "unidirectional",
        "reverse_source": True,
        **STACKED,
    },
    "between-location": {
        "decoder": "attend-between",
        "attention_score": "location",
        "decoder_layers": 2,
        "bias": False,
    },
    "transformer-uneven": {
        "encoder": "transformer",
        "decoder": "transformer",
        **TRANSFORMER,
        "embedding_size": 5,
        "hidden_size": 5,
        "attention_heads": 1,
        "encoder_layers": 1,
        "attend_bos_eos": False,
        "objectives": ["coverage", "fertility"],
        "softmax_bias": False,
    },
    "between-lexicon-mixture-tied": {
        "decoder": "attend-between",
        "decoder_layers": 2,
        "lexicon": "mixture",
        "tied_softmax": True,
    },
    "transformer-lexicon-tied": {
        "encoder": "transformer",
        "decoder": "transformer",
        **TRANSFORMER,
        "lexicon": "bias",
        "tied_softmax": True,
    },
    "coverage": {"objectives": ["coverage", "fertility"], "fertility_size": 7, "encoder": "unidirectional"},
}


def _architectures() -> dict[str, Architecture]:
    named: dict[str, Architecture] = {}
    for name, preset in PRESETS.items():
        sizes = TRANSFORMER if preset.architecture.decoder == "transformer" else {}
        architecture, _ = override(preset.architecture, Training(), SMALL | sizes)
        if architecture not in named.values():
            named[name] = architecture
    for name, values in OTHER_ARCHITECTURES.items():
        named[name] = override(Architecture(), Training(), SMALL | values)[0]
    for table, rows in TABLES.items():
        for row in rows if table in asdict(Architecture()) else ():
            if not any(row == asdict(one)[table] or row in _several(asdict(one)[table]) for one in named.values()):
                named[row] = override(Architecture(), Training(), SMALL | {table: row})[0]
    return named


def _several(value: Any) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


ARCHITECTURES = _architectures()
TABLE = {BEGIN: {4: 0.7, 6: 0.2, BEGIN: 0.1}, 5: {4: 0.6, 1: 0.004, 7: 0.3}, 6: {4: 0.2, 8: 0.8}, 8: {END: 0.1, 9: 0.5}}
"""Translation probabilities by source and target word ids."""


@pytest.fixture(params=ARCHITECTURES)
def architecture(request: pytest.FixtureRequest) -> Architecture:
    return ARCHITECTURES[request.param]


def translations_of(table: dict[int, dict[int, float]]) -> Translations:
    entries = [(condition, word, p) for condition, row in table.items() for word, p in row.items()]
    return Translations(*map(np.array, zip(*entries, strict=True)))


@pytest.fixture
def translations() -> Callable[[dict[int, dict[int, float]]], Translations]:
    """Return a function that converts a table p(word|condition) of word ids into `Translations`."""
    return translations_of


@pytest.fixture
def network(architecture: Architecture) -> EncoderDecoder:
    torch.manual_seed(3)
    network = EncoderDecoder(architecture, 10, 11).double().eval()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    if network.lexicon:
        network.lexicon.fill(translations_of(TABLE))
    return network


@pytest.fixture
def make_model() -> Callable[..., Model]:
    """Return a function that makes a small float32 model with the words a to f."""

    def make(architecture: Architecture, seed: int, right_to_left: bool = False) -> Model:
        vocabulary = Vocabulary("abcdef")
        torch.manual_seed(seed)
        network = EncoderDecoder(architecture, len(vocabulary), len(vocabulary)).eval()
        for weight in network.parameters():
            torch.nn.init.normal_(weight, std=0.5)
        if network.lexicon:
            table = {word: {4 + word % 3: 0.6, 4 + word % 2: 0.3, END: 0.1} for word in (BEGIN, *range(4, 10))}
            network.lexicon.fill(translations_of(table))
        config = ModelConfig("x", "forward", architecture, Training(), right_to_left)
        return Model(config, network, vocabulary, vocabulary, torch.device("cpu"), str(Path()))

    return make
