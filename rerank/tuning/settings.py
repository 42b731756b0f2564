"""How weights are to be tuned, from what a user names: flags, or keys of an experiment file."""

import dataclasses
from typing import Any

from moses_io.errors import InputError, nearest, shown
from rerank.metrics.metric import Metric
from rerank.tuners import moses
from rerank.tuners.problem import MOST_TIMES, check_numbers
from rerank.tuners.table import AUTO, TUNERS, TunerKind, Tuning


def settle(values: dict[str, Any]) -> Tuning:
    """Make a tuning of named values: those of `Tuning`, and those of the settings of its tuner.

    Raises:
        InputError: an unknown name, or a value that makes no sense.
    """
    shared = [each.name for each in dataclasses.fields(Tuning) if each.name != "settings"]
    own = {name: value for name, value in values.items() if name in shared}
    others = {name: value for name, value in values.items() if name not in shared}
    parity = own.get("parity", "")
    tuner = own.get("tuner", "kbmira" if parity else "mean")
    for name in ("sign", "freeze"):
        names = own.setdefault(name, ())
        if not (isinstance(names, (list, tuple)) and all(isinstance(each, str) for each in names)):
            raise InputError(f"{name}: expected a list of names, found {shown(names)}")
        own[name] = tuple(names)
    if not isinstance(tuner, str) or tuner not in TUNERS:
        raise InputError(f"tuner: unknown tuner {shown(tuner)}{nearest(str(tuner), list(TUNERS))}")
    kind = TUNERS[tuner]
    if parity and tuner == "kbmira":
        others = {"step": moses.STEP} | others
    known = setting_names(kind)
    for name in others:
        owners = [other for other, row in TUNERS.items() if name in setting_names(row)]
        if name not in known and owners:
            raise InputError(f"unknown key {shown(name)} for the tuner {tuner}; known to {', '.join(owners)}")
        if name not in known:
            raise InputError(f"unknown key {shown(name)}{nearest(name, [*known, *shared])}")
    defaults: dict[str, Any] = {"tuner": tuner, "runs": 1 if parity else kind.runs, "metric": "bleu", "parity": ""}
    tuning = Tuning(**(defaults | own), settings=kind.settings(**others))
    Metric(tuning.metric)
    check_numbers(1, whole=True, most=MOST_TIMES, runs=tuning.runs)
    if tuning.tuner == AUTO and tuning.runs > 1:
        raise InputError(f"runs: {AUTO} tunes once; set climbs=40 for more of mert and kbmira")
    if tuning.parity not in ("", "moses"):
        raise InputError(f"parity: expected 'moses', found {shown(tuning.parity)}")
    plain = (tuning.tuner, tuning.metric, tuning.runs) == ("kbmira", "bleu", 1) and not tuning.sign + tuning.freeze
    if tuning.parity and not plain:
        raise InputError("parity: Moses is followed by one run of kbmira on BLEU, with no sign and nothing frozen")
    return tuning


def setting_names(kind: TunerKind) -> list[str]:
    """Return the names of what can be set of a tuner."""
    return [each.name for each in dataclasses.fields(kind.settings)]
