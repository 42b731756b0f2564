"""What was expected of sentences against what they reached, as a picture that stands in the page of a report."""

from html import escape

import numpy as np

from moses_io.errors import printable
from rerank.confidence.fit import Fit, Outcome, Part
from rerank.report.estimates import DEV

STYLE = """
svg { display: block; width: 26em; max-width: 100%; height: auto; font-size: 11px; fill: currentColor; }
svg .grid { stroke: currentColor; stroke-opacity: .15; fill: none; } svg .dots { fill-opacity: .3; }
svg .test { fill: #38d; stroke: #38d; } svg .dev { fill: none; stroke: #e80; stroke-width: 2; }
svg polyline.test { fill: none; stroke-width: 2; } svg .equal { stroke: currentColor; stroke-dasharray: 4; }
"""
"""Colours that can be told apart on a light and on a dark page; all else has the colour of the text."""

SIDE, LEFT, TOP = 320, 48, 12
"""Of the square from 0 to 100, and its place, in the units of the picture, which is 400 wide and high."""

TICKS = range(0, 101, 20)


def picture(outcome: Outcome, dev: Fit, metric: str, name: str) -> str:
    """Return an SVG: a dot a sentence of a set, means of the quarters of the set and of dev, and where both are equal.

    Sentences below 0 stand at 0: TER may be worse than that.
    """
    expected, reached = (np.clip(values, 0, 100).tolist() for values in (outcome.expected, outcome.reached))  # (n,)
    dots = (_dot(one, other, 2) for one, other in zip(expected, reached, strict=True))
    kinds = {"test": (f"{name} (a dot is a sentence of it)", outcome.fit().quarters), "dev": (DEV, dev.quarters)}
    label, test = escape(printable(metric)), escape(printable(name))
    return "\n".join(
        [
            '<svg viewBox="0 0 400 400" role="img">',
            f"<title>{label} of the sentences of {test}: expected and reached</title>",
            *_axes(label),
            f'<g class="dots">{"".join(dots)}</g>',
            *(_quarters(kind, parts) for kind, (_, parts) in kinds.items()),
            *(_legend(place, kind, of) for place, (kind, (of, _)) in enumerate(kinds.items())),
            "</svg>",
        ]
    )


def _axes(label: str) -> list[str]:
    """Lines and numbers each way, the names of both axes, and the line on which what is expected is reached."""
    lines = []
    for tick in TICKS:
        across, down = _x(tick), _y(tick)
        lines += [
            f'<path class="grid" d="M{across:g} {TOP}v{SIDE}M{LEFT} {down:g}h{SIDE}"/>',
            f'<text x="{across:g}" y="{TOP + SIDE + 14}" text-anchor="middle">{tick}</text>',
            f'<text x="{LEFT - 6}" y="{down + 4:g}" text-anchor="end">{tick}</text>',
        ]
    middle = TOP + SIDE / 2
    return [
        *lines,
        f'<path class="equal" d="M{_x(0):g} {_y(0):g}L{_x(100):g} {_y(100):g}"/>',
        f'<text x="{LEFT + SIDE / 2:g}" y="{TOP + SIDE + 30}" text-anchor="middle">expected {label}</text>',
        f'<text transform="translate(14 {middle:g}) rotate(-90)" text-anchor="middle">reached {label}</text>',
    ]


def _quarters(kind: str, parts: tuple[Part, ...]) -> str:
    """Return the means of the parts of a set, those of the test set joined by a line."""
    places = [(part.estimated, max(0.0, part.reached)) for part in parts]
    points = " ".join(f"{_x(one):.1f},{_y(other):.1f}" for one, other in places)
    line = f'<polyline class="{kind}" points="{points}"/>' if kind == "test" else ""
    return f'{line}<g class="{kind}">{"".join(_dot(one, other, 5) for one, other in places)}</g>'


def _legend(place: int, kind: str, of: str) -> str:
    down = TOP + SIDE + 48 + 14 * place
    mark = f'<circle class="{kind}" cx="{LEFT + 8}" cy="{down - 4}" r="4"/>'
    return f'{mark}<text x="{LEFT + 20}" y="{down}">means of quarters, {escape(printable(of))}</text>'


def _dot(expected: float, reached: float, radius: int) -> str:
    return f'<circle cx="{_x(expected):.1f}" cy="{_y(reached):.1f}" r="{radius}"/>'


def _x(expected: float) -> float:
    return LEFT + SIDE * expected / 100


def _y(reached: float) -> float:
    return TOP + SIDE * (1 - reached / 100)
