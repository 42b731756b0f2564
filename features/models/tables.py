"""The tables that models are made of: name → "module:attribute". A new idea is one class and a line here.

A term that carries much memory also belongs in `_bytes_of_prefix` of `scoring/walk.py`.
"""

import importlib
from dataclasses import dataclass
from typing import Any

TABLES: dict[str, dict[str, str]] = {
    "cell": {
        "lstm": "features.models.network.cells:LSTM",
        "gru": "features.models.network.cells:GRU",
        "rnn": "features.models.network.cells:RNN",
    },
    "encoder": {
        "bidirectional": "features.models.network.encoder:BidirectionalEncoder",
        "unidirectional": "features.models.network.encoder:UnidirectionalEncoder",
        "transformer": "features.models.network.transformer:TransformerEncoder",
    },
    "wiring": {
        "none": "features.models.network.decoder:Unattended",
        "attend-first": "features.models.network.decoder:AttendFirst",
        "attend-after": "features.models.network.decoder:AttendAfter",
        "attend-between": "features.models.network.between:AttendBetween",
        "transformer": "features.models.network.transformer:TransformerDecoder",
    },
    "score": {
        "additive": "features.models.network.attention:Additive",
        "dot": "features.models.network.attention:Dot",
        "general": "features.models.network.attention:General",
        "concat": "features.models.network.attention:Additive",
        "location": "features.models.network.attention:Location",
    },
    "window": {
        "global": "features.models.network.attention:Global",
        "local-m": "features.models.network.attention:LocalMonotonic",
        "local-p": "features.models.network.attention:LocalPredictive",
    },
    "terms": {
        "position": "features.models.network.terms:Position",
        "markov": "features.models.network.terms:Markov",
        "fertility": "features.models.network.terms:Fertility",
        "previous-word": "features.models.network.terms:PreviousWord",
        "memory": "features.models.network.terms:Memory",
    },
    "objectives": {
        "fertility": "features.models.network.objectives:GlobalFertility",
        "coverage": "features.models.network.objectives:Coverage",
    },
    "optimizer": {
        "adam": "features.models.training.epoch:adam",
        "sgd": "torch.optim:SGD",
    },
    "schedule": {
        "linear": "features.models.training.epoch:linear",
        "constant": "features.models.training.epoch:constant",
        "halving": "features.models.training.epoch:halving",
    },
}


@dataclass(frozen=True)
class Value:
    """What a model can say of a candidate: a function of `features.models.scoring.values`.

    Attributes:
        description: a line for `moses-rerank features`.
        of_attention: a model without attention cannot give it.
    """

    description: str
    of_attention: bool = False


VALUES = {
    "logprob": Value("log-probability, </s> included"),
    "known": Value("the same without tokens that the model does not know"),
    "unknown": Value("number of tokens that the model does not know"),
    "worst": Value("log-probability of the worst token"),
    "worst3": Value("log-probabilities of the three worst tokens, divided by 3"),
    "entropy": Value("entropy of the attention, summed over the tokens", True),
    "coverage": Value("sum over source words of log min(1, attention) (Wu et al. 2016)", True),
    "deviation": Value("minus the sum over source words of (1 - attention)² (Xu et al. 2015)", True),
    "fertility": Value(
        "log-density of the attention of source words, by a model with global fertility (Cohn et al. 2016)", True
    ),
}
"""Named in brackets behind a model's folder."""

ADDED = "added"
"""One more: the log-probability again of candidates that the first of joined lists lacks, and 0 for others.

A model chose its translations by that very number, which tells less of them than of a decoder's: it gets a weight of
its own.
"""


def find(table: str, name: str) -> Any:
    """Return what stands behind a row of `TABLES`."""
    return load(TABLES[table][name])


def load(target: str) -> Any:
    """Return what `module:attribute` names."""
    module, attribute = target.split(":")
    return getattr(importlib.import_module(module), attribute)
