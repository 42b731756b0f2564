"""Presets of models, named after the systems of papers."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from features.models.settings import NO_ATTENTION, Architecture, Training, override
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
    "embedding_size": 512, "hidden_size": 512, "attention_size": 256, "decoder_layers": 2, "min_frequency": 5,
    "optimizer": "sgd", "learning_rate": 0.1, "schedule": "constant", "epochs": 20, "patience": 20, "clip_norm": 5,
    "dropout": 0,
}  # fmt: skip
"""Cohn et al. 2016, section 4. The paper has no learning rate and no clipping. mantis starts at 0.1."""
_LUONG = {
    "embedding_size": 1000, "hidden_size": 1000, "attention_size": 1000, "decoder_layers": 4, "encoder_layers": 4,
    "max_positions": 50, "vocabulary_size": 50000, "min_frequency": 1, "max_length": 50, "batch_size": 128,
    "init_range": 0.1, "clip_norm": 5, "optimizer": "sgd", "learning_rate": 1, "schedule": "halving", "epochs": 12,
    "patience": 12, "decay_start": 8, "dropout": 0.2, "bias": False, "softmax_bias": False,
}  # fmt: skip
"""Luong et al. 2015, section 4.1, with dropout."""
_LUONG_PLAIN = _LUONG | {"epochs": 10, "decay_start": 5, "dropout": 0}
_CHOI = {
    "embedding_size": 620, "hidden_size": 1000, "attention_size": 2000, "bpe": 30000, "max_length": 50,
    "schedule": "constant", "learning_rate": 0.001, "epochs": 20,
}  # fmt: skip
"""Choi et al. 2018, section 4.

The paper has no learning rate, dropout, clipping or batch size. It uses BLEU for early stopping, we use perplexity.
"""
_YANG = {
    "embedding_size": 1000, "hidden_size": 1000, "attention_size": 1000, "memory_size": 500, "vocabulary_size": 50000,
    "min_frequency": 1, "max_length": 50, "batch_size": 128, "init_range": 0.1, "clip_norm": 3, "optimizer": "sgd",
    "learning_rate": 0.7, "schedule": "halving", "epochs": 12, "patience": 12, "decay_start": 8, "dropout": 0,
}  # fmt: skip
"""Yang et al. 2017, section 3.2, English to German."""

_ENCDEC = Architecture(encoder="unidirectional", decoder=NO_ATTENTION)
_ALIGN = Architecture(attention_terms=("position", "markov", "fertility"), initial_state="learned")
_FERTILE = dataclasses.replace(_ALIGN, objectives=("fertility",))
_YANG_PARTS = Architecture(decoder="attend-after", input_feeding="context", softmax_bias=False)
_BPE = Training(bpe=4000)
_VASWANI = {
    "embedding_size": 512, "hidden_size": 512, "attention_heads": 8, "feedforward_size": 2048, "decoder_layers": 6,
    "encoder_layers": 6, "bpe": 37000, "batch_tokens": 25000, "learning_rate": 0.0007, "warmup_updates": 4000,
    "dropout": 0.1,
}  # fmt: skip
"""Vaswani et al. 2017, base model.

The rate is the maximum of their schedule, which decays with the inverse square root of the updates.
"""
_GNMT = {
    "embedding_size": 1024, "hidden_size": 1024, "attention_size": 1024, "decoder_layers": 8, "encoder_layers": 8,
    "attention_score": "additive", "bpe": 32000, "init_range": 0.04, "clip_norm": 5, "batch_size": 128,
    "learning_rate": 0.0002, "schedule": "constant", "dropout": 0.2,
}  # fmt: skip
"""Wu et al. 2016, sections 3 and 8.

They continue with SGD after Adam, and only their bottom encoder layer is bidirectional.
"""

_ZAREMBA = {
    "embedding_size": 650, "hidden_size": 650, "decoder_layers": 2, "encoder_layers": 2, "tied_softmax": False,
    "vocabulary_size": 10000, "min_frequency": 1, "batch_size": 20, "init_range": 0.05, "clip_norm": 5,
    "optimizer": "sgd", "learning_rate": 1, "schedule": "halving", "decay_start": 6, "decay_interval": 4, "epochs": 39,
    "patience": 39, "dropout": 0.5,
}  # fmt: skip
"""Zaremba et al. 2014, section 4.1, the medium LSTM.

They read a text without sentence boundaries in segments of 35 words, and divide the learning rate by 1.2 after
each epoch. We divide it by 2 after every fourth epoch.
"""


def _luong(score: str, window: str = "global") -> Preset:
    feed = "none" if score == "location" else "output"
    parts = Architecture(
        encoder="unidirectional", reverse_source=True, attend_bos_eos=False, decoder="attend-after", input_feeding=feed,
        attention_score=score, attention_window=window, bias=False, softmax_bias=False,
    )  # fmt: skip
    return Preset(f"{window} attention, score {score} (Luong et al. 2015)", parts, paper=_LUONG)


def _choi(description: str, terms: tuple[str, ...], granularity: str = "word", contextual: bool = False) -> Preset:
    parts = Architecture(
        softmax_input="state", attention_terms=terms, granularity=granularity, contextual_embeddings=contextual
    )
    return Preset(f"{description}, subwords (Choi et al. 2018)", parts, _BPE, _CHOI)


def _yang(description: str, terms: tuple[str, ...] = (), term_radius: int = 0) -> Preset:
    parts = dataclasses.replace(_YANG_PARTS, attention_terms=terms, term_radius=term_radius)
    return Preset(f"{description} (Yang et al. 2017)", parts, paper=_YANG)


PRESETS: dict[str, Preset] = {
    "encdec": Preset("no attention (Sutskever et al. 2014; Luong's base)", _ENCDEC, paper=_LUONG_PLAIN),
    "encdec-reverse": Preset(
        "no attention, source reversed (Sutskever et al. 2014; Luong's base + reverse + dropout)",
        dataclasses.replace(_ENCDEC, reverse_source=True), paper=_LUONG,
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
    "attend-after": Preset(
        "attention after a fused recurrence, with score general (after Luong et al. 2015)",
        Architecture(decoder="attend-after", attention_score="general"), paper=_LUONG,
    ),
    "gnmt": Preset(
        "attention with the bottom decoder layer as query (after Wu et al. 2016)",
        Architecture(decoder="attend-between", attention_score="general", decoder_layers=2), paper=_GNMT,
    ),
    "transformer": Preset(
        "transformer with normalization before each sublayer (Vaswani et al. 2017; Xiong et al. 2020)",
        Architecture(
            encoder="transformer", decoder="transformer", decoder_layers=3, encoder_layers=3,
            embedding_size=256, hidden_size=256,
        ),
        Training(epochs=20, batch_tokens=2000, learning_rate=0.002, label_smoothing=0.1), _VASWANI,
    ),
    "lstm-lm": Preset(
        "LSTM language model of the target, which reads no source (after Zaremba et al. 2014)",
        Architecture(
            encoder="unidirectional", decoder=NO_ATTENTION, language_model=True, embedding_size=256, hidden_size=512,
            tied_softmax=True,
        ),
        paper=_ZAREMBA,
    ),
    "transformer-lm": Preset(
        "transformer language model of the target, which reads no source (Vaswani et al. 2017; Xiong et al. 2020)",
        Architecture(
            encoder="transformer", decoder="transformer", language_model=True, decoder_layers=3, encoder_layers=1,
            embedding_size=256, hidden_size=256,
        ),
        Training(epochs=20, batch_tokens=2000, learning_rate=0.002, label_smoothing=0.1),
        _VASWANI | {"encoder_layers": 1},
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


def resolve(preset: Preset, paper_sizes: bool, values: Mapping[str, Any]) -> tuple[Architecture, Training]:
    """Return the settings of a preset, overridden by the paper's with `paper_sizes`, and then by `values`."""
    paper = preset.paper if paper_sizes else {}
    return override(preset.architecture, preset.training, {**paper, **values})
