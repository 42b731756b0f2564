"""Presets of models, named after the systems of papers."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from features.models.settings import Architecture, Training, override
from moses_io.files.errors import InputError, nearest, shown


@dataclass(frozen=True)
class Preset:
    """A named model with small settings for 5-50 thousand sentence pairs, and the settings of the paper."""

    description: str  # line in the output of `moses-rerank presets`
    architecture: Architecture = field(default_factory=Architecture)
    training: Training = field(default_factory=Training)
    paper: Mapping[str, Any] = field(default_factory=dict)  # different settings of the paper, for `--paper-sizes`
    symmetric: bool = False  # whether both directions are trained together
    pretrained: bool = False  # whether training starts from a trained model


_COHN = {
    "embedding": 512, "hidden": 512, "attention": 256, "layers": 2, "frequency": 5,
    "optimizer": "sgd", "rate": 0.1, "schedule": "constant", "epochs": 20, "patience": 20, "clip": 5,
    "dropout": 0,
}  # fmt: skip
"""Cohn et al. 2016, section 4. The paper has no learning rate and no clipping. mantis starts at 0.1."""
_LUONG = {
    "embedding": 1000, "hidden": 1000, "attention": 1000, "layers": 4, "encoder_layers": 4, "positions": 50,
    "words": 50000, "frequency": 1, "length": 50, "batch": 128, "init": 0.1, "clip": 5,
    "optimizer": "sgd", "rate": 1, "schedule": "halving", "epochs": 12, "patience": 12, "hold": 8, "dropout": 0.2,
    "bias": False, "softmax_bias": False,
}  # fmt: skip
"""Luong et al. 2015, section 4.1, with dropout."""
_LUONG_PLAIN = _LUONG | {"epochs": 10, "hold": 5, "dropout": 0}
_CHOI = {
    "embedding": 620, "hidden": 1000, "attention": 2000, "bpe": 30000, "length": 50, "schedule": "constant",
    "rate": 0.001, "epochs": 20,
}  # fmt: skip
"""Choi et al. 2018, section 4.

The paper has no learning rate, dropout, clipping or batch size. It uses BLEU for early stopping, we use perplexity.
"""
_YANG = {
    "embedding": 1000, "hidden": 1000, "attention": 1000, "memory": 500, "words": 50000, "frequency": 1,
    "length": 50, "batch": 128, "init": 0.1, "clip": 3,
    "optimizer": "sgd", "rate": 0.7, "schedule": "halving", "epochs": 12, "patience": 12, "hold": 8, "dropout": 0,
}  # fmt: skip
"""Yang et al. 2017, section 3.2, English to German."""

_ENCDEC = Architecture(encoder="unidirectional", wiring="none")
_ALIGN = Architecture(terms=("position", "markov", "fertility"), initial="learned")
_FERTILE = dataclasses.replace(_ALIGN, objectives=("fertility",))
_YANG_PARTS = Architecture(wiring="attend-after", feed="context", softmax_bias=False)
_BPE = Training(bpe=4000)
_VASWANI = {
    "embedding": 512, "hidden": 512, "heads": 8, "feedforward": 2048, "layers": 6, "encoder_layers": 6,
    "bpe": 37000, "tokens": 25000, "rate": 0.0007, "warmup": 4000, "dropout": 0.1,
}  # fmt: skip
"""Vaswani et al. 2017, base model.

The rate is the maximum of their schedule, which decays with the inverse square root of the updates.
"""
_GNMT = {
    "embedding": 1024, "hidden": 1024, "attention": 1024, "layers": 8, "encoder_layers": 8, "score": "additive",
    "bpe": 32000, "init": 0.04, "clip": 5, "batch": 128, "rate": 0.0002, "schedule": "constant", "dropout": 0.2,
}  # fmt: skip
"""Wu et al. 2016, sections 3 and 8.

They continue with SGD after Adam, and only their bottom encoder layer is bidirectional.
"""


def _luong(score: str, window: str = "global") -> Preset:
    feed = "none" if score == "location" else "output"
    parts = Architecture(
        encoder="unidirectional", reverse=True, sentinels=False, wiring="attend-after", feed=feed, score=score,
        window=window, bias=False, softmax_bias=False,
    )  # fmt: skip
    return Preset(f"{window} attention, score {score} (Luong et al. 2015)", parts, paper=_LUONG)


def _choi(description: str, terms: tuple[str, ...], granularity: str = "word", contextual: bool = False) -> Preset:
    parts = Architecture(output="state", terms=terms, granularity=granularity, contextual=contextual)
    return Preset(f"{description}, subwords (Choi et al. 2018)", parts, _BPE, _CHOI)


def _yang(description: str, terms: tuple[str, ...] = (), neighbours: int = 0) -> Preset:
    parts = dataclasses.replace(_YANG_PARTS, terms=terms, neighbours=neighbours)
    return Preset(f"{description} (Yang et al. 2017)", parts, paper=_YANG)


PRESETS: dict[str, Preset] = {
    "encdec": Preset("no attention (Sutskever et al. 2014; Luong's base)", _ENCDEC, paper=_LUONG_PLAIN),
    "encdec-reverse": Preset(
        "no attention, source reversed (Sutskever et al. 2014; Luong's base + reverse + dropout)",
        dataclasses.replace(_ENCDEC, reverse=True), paper=_LUONG,
    ),
    "rnnsearch": Preset("additive attention (Bahdanau et al. 2015, with the output layer of Cohn)", paper=_COHN),
    "luong-global-location": _luong("location"),
    "luong-global-dot": _luong("dot"),
    "luong-global-general": _luong("general"),
    "luong-global-concat": _luong("concat"),
    "luong-local-m-dot": _luong("dot", "local-m"),
    "luong-local-m-general": _luong("general", "local-m"),
    "luong-local-p-dot": _luong("dot", "local-p"),
    "luong-local-p-general": _luong("general", "local-p"),
    "gnmt": Preset(
        "attention with the bottom decoder layer as query (after Wu et al. 2016)",
        Architecture(wiring="attend-between", score="general", layers=2), paper=_GNMT,
    ),
    "transformer": Preset(
        "transformer with normalization before each sublayer (Vaswani et al. 2017; Xiong et al. 2020)",
        Architecture(
            encoder="transformer", wiring="transformer", layers=3, encoder_layers=3, embedding=256, hidden=256
        ),
        Training(epochs=20, tokens=2000, rate=0.002, smoothing=0.1), _VASWANI,
    ),
    "cohn-align": Preset(
        "additive attention with position, Markov and local fertility terms (Cohn et al. 2016)", _ALIGN, paper=_COHN
    ),
    "cohn-align-glofer": Preset("cohn-align with global fertility, trained from scratch", _FERTILE, paper=_COHN),
    "cohn-align-glofer-pre": Preset(
        "cohn-align with global fertility, initialized from a trained cohn-align", _FERTILE, paper=_COHN,
        pretrained=True,
    ),
    "cohn-align-sym": Preset(
        "cohn-align, both directions trained together with an agreement bonus", _ALIGN, paper=_COHN, symmetric=True
    ),
    "cohn-align-sym-glofer-pre": Preset(
        "cohn-align-sym with global fertility, initialized from a trained cohn-align-sym", _FERTILE, paper=_COHN,
        symmetric=True, pretrained=True,
    ),
    "choi-baseline": _choi("additive attention", ()),
    "choi-atty": _choi("attention that depends on the previous target word", ("previous-word",)),
    "choi-atty2d": _choi("fine-grained attention that depends on the previous target word", ("previous-word",), "fine"),
    "choi-context": _choi("contextual word vectors", (), contextual=True),
    "choi-context-atty": _choi("choi-atty with contextual word vectors", ("previous-word",), contextual=True),
    "choi-context-atty2d": _choi("choi-atty2d with contextual word vectors", ("previous-word",), "fine", True),
    "yang-rnnsearch": _yang("additive attention after the decoder step, context fed into the next step"),
    "yang-window1": _yang("yang-rnnsearch with an attention memory, window 1", ("memory",)),
    "yang-window11": _yang("yang-rnnsearch with an attention memory, window 11", ("memory",), 5),
}  # fmt: skip


def find_preset(name: str) -> Preset:
    """Return the preset with this name, or raise `InputError` if it is unknown."""
    if not isinstance(name, str) or name not in PRESETS:
        raise InputError(f"unknown preset {shown(name)}{nearest(str(name), list(PRESETS))}")
    return PRESETS[name]


def settle(preset: Preset, paper_sizes: bool, values: Mapping[str, Any]) -> tuple[Architecture, Training]:
    """Return the settings of a preset, overridden by the paper's with `paper_sizes`, and then by `values`."""
    paper = preset.paper if paper_sizes else {}
    return override(preset.architecture, preset.training, {**paper, **values})
