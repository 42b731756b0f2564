"""Components of features that Moses neither tunes nor prints, declared under `[feature]` in an ini file."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moses_io.files.errors import InputError, counted, shown
from moses_io.files.text import words

UNKNOWN_WORDS = "UnknownWordPenalty"
"""Type, and prefix of the default name, of a feature that Moses by default neither tunes nor prints."""

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
"""Texts that Moses reads as booleans, in lower case (Scan<bool> in moses/Util.cpp)."""


@dataclass(frozen=True)
class Untuneable:
    """A feature with components that Moses neither tunes nor prints.

    Attributes:
        type: of the feature, the first word of its line under `[feature]`.
        weights: weight of each component, None for a component that Moses tunes.
    """

    type: str
    weights: tuple[float | None, ...]


def split_untuneable(
    weights: Mapping[str, tuple[float, ...]], features: Sequence[tuple[str, str]]
) -> tuple[dict[str, tuple[float, ...]], dict[str, Untuneable], tuple[str, ...]]:
    """Separate the weights of components that Moses prints from features with untuneable components.

    If a feature with `tuneable-components` has no weights, each component has weight 1, as in Moses.

    Args:
        weights: of all components, by the name of the feature.
        features: (place, line) of each line under `[feature]`, where place is file and line, for messages.

    Returns:
        (weights of the components that Moses prints, features with untuneable components), both by feature name, and
        the names of declared features without weights whose components are all tuneable.

    Raises:
        InputError: a value is not a boolean, or `weights` and `tuneable-components` of a feature differ in length.
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
    unweighted = tuple(name for name, (_, tuneable, _) in declared.items() if tuneable is None and name not in weights)
    return visible, untuneable, unweighted


def _declared(features: Sequence[tuple[str, str]]) -> dict[str, tuple[str, tuple[bool, ...] | None, str]]:
    """Return (type, tuneable, place) of each declared feature, by its name.

    `tuneable` has a boolean for each component, or is `()` if Moses tunes no component, or None if it tunes all. A
    feature without a name is named by its type and a counter (ParseLine in moses/FF/FeatureFunction.cpp).
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
    """Return the weights of all components, and the `[feature]` section that declares the untuneable ones.

    A feature whose name starts with `UnknownWordPenalty` is untuneable by default. It is declared only if it is
    tuneable. A feature with another number of weights than of tuneable components stays as it is, without declaration.

    Args:
        weights: of the components that Moses prints, by feature name.
        untuneable: features with untuneable components, by name.

    Returns:
        (weights of all components, lines of the section). The lines start with an empty line and the header. There are
        no lines if no declaration is needed.
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
