"""Every row of every table, as small networks in float64; a row that is new comes by itself."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from features.models.config import ModelConfig
from features.models.folder import Model
from features.models.network.model import EncoderDecoder
from features.models.presets import PRESETS
from features.models.settings import Architecture, Training, override
from features.models.tables import TABLES
from features.models.vocabulary import BEGIN, END, Vocabulary

SMALL = {"embedding": 4, "hidden": 5, "attention": 6, "memory": 3, "reach": 2, "positions": 4}
STACKED = {"layers": 2, "encoder_layers": 2}
TRANSFORMER = {"embedding": 6, "hidden": 6, "heads": 2, "feedforward": 5, **STACKED}

BESIDE_PRESETS: dict[str, dict[str, Any]] = {
    "gru": {"cell": "gru", **STACKED},
    "rnn": {"cell": "rnn", "terms": ["position", "markov", "fertility", "memory"], "neighbours": 2, **STACKED},
    "gru-encdec": {"cell": "gru", "encoder": "unidirectional", "wiring": "none", **STACKED},
    "rnn-encdec": {"cell": "rnn", "encoder": "unidirectional", "wiring": "none", "reverse": True},
    "encdec-bidirectional": {"wiring": "none", "layers": 2},
    "after-with-terms": {
        "wiring": "attend-after", "terms": ["position", "fertility", "memory", "previous-word"], "cell": "gru",
    },
    "learned-initial-gru": {"initial": "learned", "cell": "gru", **STACKED},
    "learned-initial-reversed": {
        "initial": "learned", "encoder": "unidirectional", "wiring": "none", "reverse": True, **STACKED,
    },
    "after-stacked": {"wiring": "attend-after", "encoder": "unidirectional", "feed": "output", **STACKED},
    "first-location-words": {"score": "location", "sentinels": False},
    "first-general-local-p": {"score": "general", "window": "local-p", "encoder": "unidirectional", "reverse": True},
    "fine-local-m": {"granularity": "fine", "window": "local-m", "terms": ["markov", "memory"], "neighbours": 0},
    "fine-local-p": {"granularity": "fine", "window": "local-p", "sentinels": False},
    "tied": {"tie": True},
    "tied-encdec-contextual": {"tie": True, "wiring": "none", "softmax_bias": False, "contextual": True},
    "lexicon": {"lexicon": "bias"},
    "lexicon-after-fine": {"lexicon": "bias", "wiring": "attend-after", "granularity": "fine", "sentinels": False},
    "lexicon-mixture": {"lexicon": "mixture"},
    "lexicon-mixture-after": {"lexicon": "mixture", "wiring": "attend-after", "window": "local-m", "feed": "context"},
    "lexicon-local-p": {"lexicon": "bias", "window": "local-p", "softmax_bias": False},
    "between-gru": {
        "wiring": "attend-between", "cell": "gru", "layers": 3, "objectives": ["coverage", "fertility"],
        "sentinels": False,
    },
    "between-rnn-dot": {
        "wiring": "attend-between", "cell": "rnn", "score": "dot", "encoder": "unidirectional", "reverse": True,
        **STACKED,
    },
    "between-location": {"wiring": "attend-between", "score": "location", "layers": 2, "bias": False},
    "transformer-uneven": {
        "encoder": "transformer", "wiring": "transformer", **TRANSFORMER, "embedding": 5, "hidden": 5, "heads": 1,
        "encoder_layers": 1, "sentinels": False, "objectives": ["coverage", "fertility"], "softmax_bias": False,
    },
    "between-lexicon-mixture-tied": {"wiring": "attend-between", "layers": 2, "lexicon": "mixture", "tie": True},
    "transformer-lexicon-tied": {
        "encoder": "transformer", "wiring": "transformer", **TRANSFORMER, "lexicon": "bias", "tie": True,
    },
    "coverage": {"objectives": ["coverage", "fertility"], "fertility": 7, "encoder": "unidirectional"},
}  # fmt: skip


def _architectures() -> dict[str, Architecture]:
    named: dict[str, Architecture] = {}
    for name, preset in PRESETS.items():
        sizes = TRANSFORMER if preset.architecture.wiring == "transformer" else {}
        architecture, _ = override(preset.architecture, Training(), SMALL | sizes)
        if architecture not in named.values():
            named[name] = architecture
    for name, values in BESIDE_PRESETS.items():
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
"""What source words are translated as, by their numbers."""


@pytest.fixture(params=ARCHITECTURES)
def architecture(request: pytest.FixtureRequest) -> Architecture:
    return ARCHITECTURES[request.param]


@pytest.fixture
def network(architecture: Architecture) -> EncoderDecoder:
    torch.manual_seed(3)
    network = EncoderDecoder(architecture, 10, 11).double().eval()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    if network.lexicon:
        network.lexicon.fill(TABLE)
    return network


@pytest.fixture
def make_model() -> Callable[..., Model]:
    """Make a small model that knows the words a to f, in float32."""

    def make(architecture: Architecture, seed: int, right_to_left: bool = False) -> Model:
        vocabulary = Vocabulary("abcdef")
        torch.manual_seed(seed)
        network = EncoderDecoder(architecture, len(vocabulary), len(vocabulary)).eval()
        for weight in network.parameters():
            torch.nn.init.normal_(weight, std=0.5)
        if network.lexicon:
            network.lexicon.fill(
                {word: {4 + word % 3: 0.6, 4 + word % 2: 0.3, END: 0.1} for word in (BEGIN, *range(4, 10))}
            )
        config = ModelConfig("x", "forward", architecture, Training(), right_to_left)
        return Model(config, network, vocabulary, vocabulary, torch.device("cpu"), str(Path()))

    return make
