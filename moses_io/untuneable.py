"""Components of features that Moses neither tunes nor prints, as `[feature]` of an ini declares them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moses_io.files.errors import InputError, counted, shown
from moses_io.files.text import words

UNKNOWN_WORDS = "UnknownWordPenalty"
"""Type of the feature that Moses never tunes and never prints, and start of its name."""

_TYPES = (
    "BleuScoreFeature",
    "ConstrainedDecoding",
    "HyperParameterAsWeight",
    "MaxSpanFreeNonTermSource",
    "NieceTerminal",
    "SetSourcePhrase",
    "SyntaxRHS",
    UNKNOWN_WORDS,
)
"""Types of features that set `m_tuneable = false` in their constructors (moses/FF)."""

_BOOLEANS = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
"""What Moses reads as a boolean, in lower case (Scan<bool> of moses/Util.cpp)."""


@dataclass(frozen=True)
class Untuneable:
    """A feature with components that Moses neither tunes nor prints.

    Attributes:
        type: of the feature, the first word of its line under `[feature]`.
        weights: of all its components; None for one that Moses tunes.
    """

    type: str
    weights: tuple[float | None, ...]


def split_untuneable(
    weights: Mapping[str, tuple[float, ...]], features: Sequence[tuple[str, str]]
) -> tuple[dict[str, tuple[float, ...]], dict[str, Untuneable]]:
    """Split weights into those of components that Moses prints, and features with other components.

    A component without a weight has weight 1, as in Moses.

    Args:
        weights: of all components, by the names of their features.
        features: (place, line) of each line under `[feature]`; the place is file and line, for messages.

    Raises:
        InputError: a line that is not as Moses reads it, or another number of weights than of components.
    """
    declared = _declared(features)
    visible = dict(weights)
    untuneable: dict[str, Untuneable] = {}
    for name in {**weights, **declared}:
        default = () if name.startswith(UNKNOWN_WORDS) else None
        kind, tuneable, place = declared.get(name, (UNKNOWN_WORDS, default, ""))
        if tuneable is None:
            continue
        values = visible.pop(name, None)
        if not tuneable:
            if values is not None:
                untuneable[name] = Untuneable(kind, values)
            continue
        if values is not None and len(values) != len(tuneable):
            sizes = f"{counted(len(values), 'weight')} and tuneable-components for {len(tuneable)}"
            raise InputError(f"{place}: feature {shown(name)} has {sizes}")
        both = list(zip(values or (1.0,) * len(tuneable), tuneable, strict=True))
        untuneable[name] = Untuneable(kind, tuple(None if tuned else weight for weight, tuned in both))
        if values is not None:
            visible[name] = tuple(weight for weight, tuned in both if tuned)
    return visible, untuneable


def _declared(features: Sequence[tuple[str, str]]) -> dict[str, tuple[str, tuple[bool, ...] | None, str]]:
    """Return by name the type of each feature, for each component whether Moses tunes it, and the place of the line.

    Instead of the components there is nothing, `()`, if Moses tunes none, and None if it tunes all. A feature without a
    name is called as its type and a number (moses/FF/FeatureFunction.cpp, ParseLine).
    """
    declared: dict[str, tuple[str, tuple[bool, ...] | None, str]] = {}
    unnamed = Counter[str]()
    for place, line in features:
        kind, *arguments = words(line)
        values = {key: value for key, _, value in (argument.partition("=") for argument in arguments)}
        name = values.get("name") or f"{kind}{unnamed[kind]}"
        unnamed[kind] += not values.get("name")
        tuneable: tuple[bool, ...] | None = None
        if not _boolean(values.get("tuneable", str(kind not in _TYPES)), place):
            tuneable = ()
        elif "tuneable-components" in values:
            tuneable = tuple(_boolean(value, place) for value in values["tuneable-components"].split(","))
            tuneable = None if all(tuneable) else tuneable if any(tuneable) else ()
        declared[name] = (kind, tuneable, place)
    return declared


def _boolean(text: str, place: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise InputError(f"{place}: expected true or false, found {shown(text)}")
    return _BOOLEANS[text.lower()]


def with_all_components(
    weights: Mapping[str, Sequence[float]], untuneable: Mapping[str, Untuneable]
) -> tuple[dict[str, Sequence[float]], list[str]]:
    """Return weights of all components, and lines under `[feature]` that declare which of them are untuneable.

    Of a feature called UnknownWordPenalty0 it need not be declared that it is untuneable, but that it is tuneable.
    """
    complete = dict(weights)
    lines = [f"{UNKNOWN_WORDS} name={name} tuneable=true" for name in weights if name.startswith(UNKNOWN_WORDS)]
    for name, feature in untuneable.items():
        tuned = iter(weights.get(name, ()))
        if None not in feature.weights and name not in weights:
            complete[name] = [weight for weight in feature.weights if weight is not None]
            if not name.startswith(UNKNOWN_WORDS):
                lines.append(f"{feature.type} name={name} tuneable=false")
        elif len(weights.get(name, ())) == feature.weights.count(None) > 0:
            complete[name] = [next(tuned) if weight is None else weight for weight in feature.weights]
            components = ",".join("true" if each is None else "false" for each in feature.weights)
            lines.append(f"{feature.type} name={name} tuneable-components={components}")
    return complete, ["", "[feature]", *lines] if lines else []
