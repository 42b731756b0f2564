"""The tables that models are made of: name → "module:attribute". A new idea is one class and a line here."""

import importlib
from typing import Any

TABLES: dict[str, dict[str, str]] = {
    "cell": {
        "lstm": "features.models.cells:LSTM",
        "gru": "features.models.cells:GRU",
        "rnn": "features.models.cells:RNN",
    },
    "encoder": {
        "bidirectional": "features.models.encoder:BidirectionalEncoder",
        "unidirectional": "features.models.encoder:UnidirectionalEncoder",
    },
    "wiring": {
        "none": "features.models.decoder:Unattended",
        "attend-first": "features.models.decoder:AttendFirst",
        "attend-after": "features.models.decoder:AttendAfter",
    },
    "score": {
        "additive": "features.models.scores:Additive",
        "dot": "features.models.scores:Dot",
        "general": "features.models.scores:General",
        "concat": "features.models.scores:Concat",
        "location": "features.models.scores:Location",
    },
    "window": {
        "global": "features.models.windows:Global",
        "local-m": "features.models.windows:LocalMonotonic",
        "local-p": "features.models.windows:LocalPredictive",
    },
    "terms": {
        "position": "features.models.terms:Position",
        "markov": "features.models.terms:Markov",
        "fertility": "features.models.terms:Fertility",
        "previous-word": "features.models.terms:PreviousWord",
        "memory": "features.models.terms:Memory",
    },
    "objectives": {
        "fertility": "features.models.objectives:GlobalFertility",
        "coverage": "features.models.objectives:Coverage",
    },
    "optimizer": {
        "adam": "features.models.optimizers:adam",
        "sgd": "torch.optim:SGD",
    },
    "schedule": {
        "linear": "features.models.optimizers:linear",
        "constant": "features.models.optimizers:constant",
        "halving": "features.models.optimizers:halving",
    },
}


def find(table: str, name: str) -> Any:
    """Return what stands behind a row."""
    module, attribute = TABLES[table][name].split(":")
    return getattr(importlib.import_module(module), attribute)
