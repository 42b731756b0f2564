"""Tables of the parts of models: name → "module:attribute".

To add a part, write a class and add a row here. A term with a large memory also needs an entry in `_bytes_of_prefix` of
`scoring/walk.py`.
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
    "decoder": {
        "no-attention": "features.models.network.decoder:Unattended",
        "attend-first": "features.models.network.decoder:AttendFirst",
        "attend-after": "features.models.network.decoder:AttendAfter",
        "attend-between": "features.models.network.between:AttendBetween",
        "transformer": "features.models.network.transformer:TransformerDecoder",
    },
    "attention_score": {
        "additive": "features.models.network.attention:Additive",
        "dot": "features.models.network.attention:Dot",
        "general": "features.models.network.attention:General",
        "concat": "features.models.network.attention:Additive",
        "location": "features.models.network.attention:Location",
    },
    "attention_window": {
        "global": "features.models.network.attention:Global",
        "local-m": "features.models.network.attention:LocalMonotonic",
        "local-p": "features.models.network.attention:LocalPredictive",
    },
    "attention_terms": {
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
    """A value that a model can give for a candidate, computed by a function in `features.models.scoring.values`.

    Attributes:
        description: line in the output of `moses-rerank features`.
        of_attention: whether it needs a model with attention.
    """

    description: str
    of_attention: bool = False


VALUES = {
    "logprob": Value("log-probability, including </s>"),
    "known": Value("log-probability without the tokens that are not in the vocabulary"),
    "unknown": Value("number of tokens that are not in the vocabulary"),
    "worst": Value("lowest log-probability of a token"),
    "worst3": Value("sum of the three lowest log-probabilities of tokens, divided by 3"),
    "entropy": Value("entropy of the attention, summed over tokens", True),
    "coverage": Value("coverage penalty: sum over source words of log min(1, attention) (Wu et al. 2016)", True),
    "deviation": Value("minus the sum over source words of (1 - attention)² (Xu et al. 2015)", True),
    "fertility": Value(
        "log-density of the attention on source words, for models with global fertility (Cohn et al. 2016)", True
    ),
}
"""Values that can be named in brackets after a model's folder."""

PER_WORD = "per_word"
"""One more value: `logprob` divided by the number of words that the model predicts, with `</s>`."""

ADDED = "added"
"""One more value: `logprob` for candidates that are missing in the first of the merged lists, 0 for other candidates.

A model has chosen its own translations by their log-probability. Their log-probability is therefore less informative
than that of the decoder's candidates, and gets a separate weight.
"""


def find(table: str, name: str) -> Any:
    """Return the object of a row of `TABLES`."""
    return load(TABLES[table][name])


def load(target: str) -> Any:
    """Import and return the object that `module:attribute` names."""
    module, attribute = target.split(":")
    return getattr(importlib.import_module(module), attribute)
