"""The tables that models are made of: name → "module:attribute". A new idea is one class and a line here."""

import importlib
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
    },
    "wiring": {
        "none": "features.models.network.decoder:Unattended",
        "attend-first": "features.models.network.decoder:AttendFirst",
        "attend-after": "features.models.network.decoder:AttendAfter",
    },
    "score": {
        "additive": "features.models.network.scores:Additive",
        "dot": "features.models.network.scores:Dot",
        "general": "features.models.network.scores:General",
        "concat": "features.models.network.scores:Concat",
        "location": "features.models.network.scores:Location",
    },
    "window": {
        "global": "features.models.network.windows:Global",
        "local-m": "features.models.network.windows:LocalMonotonic",
        "local-p": "features.models.network.windows:LocalPredictive",
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
        "adam": "features.models.training.optimizers:adam",
        "sgd": "torch.optim:SGD",
    },
    "schedule": {
        "linear": "features.models.training.optimizers:linear",
        "constant": "features.models.training.optimizers:constant",
        "halving": "features.models.training.optimizers:halving",
    },
}


def find(table: str, name: str) -> Any:
    """Return what stands behind a row."""
    module, attribute = TABLES[table][name].split(":")
    return getattr(importlib.import_module(module), attribute)
