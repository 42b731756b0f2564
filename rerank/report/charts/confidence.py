"""Chart of what was expected of sentences against what they reached."""

import numpy as np

from moses_io.errors import counted
from rerank.confidence.confidence import Fit, Part
from rerank.confidence.fitting import Outcome
from rerank.report.charts.drawing import KINDS, figure, label, legend, upright
from rerank.report.estimates import DEV

SIDE, LEFT, TOP = 320, 48, 12
"""Of the square from 0 to 100, and its place."""

TICKS = range(0, 101, 20)


def confidence(outcome: Outcome, dev: Fit, metric: str, name: str) -> str:
    """Draw a dot a sentence of a set, means of the quarters of the set and of dev, and where both are equal.

    Sentences below 0 stand at 0: TER may be worse than that.
    """
    expected, reached = (np.clip(values, 0, 100).tolist() for values in (outcome.expected, outcome.reached))  # (n,)
    dots = (_dot(one, other, 2) for one, other in zip(expected, reached, strict=True))
    quarters = zip(KINDS, (dev.quarters, outcome.fit().quarters), (7, 5), strict=False)
    parts = [
        *_axes(metric),
        f'<g class="two dots">{"".join(dots)}</g>',
        *(_quarters(*each) for each in quarters),
        *legend([DEV, name], LEFT, TOP + SIDE + 52),
    ]
    caption = (
        f"{metric} that was expected of {counted(len(expected), 'sentence')} of {name}, a small dot each, and what "
        "they reached; large dots are means of quarters."
    )
    return figure(f"{metric} of the sentences of {name}: expected and reached", caption, TOP + SIDE + 62, parts)


def _axes(metric: str) -> list[str]:
    """Lines and numbers each way, the names of both axes, and the line on which what is expected is reached."""
    lines = []
    for tick in TICKS:
        across, down = _x(tick), _y(tick)
        lines += [
            f'<path class="grid" d="M{across:g} {TOP}v{SIDE}M{LEFT} {down:g}h{SIDE}"/>',
            label(across, TOP + SIDE + 14, tick, "middle"),
            label(LEFT - 6, down + 4, tick, "end"),
        ]
    return [
        *lines,
        f'<path class="equal" d="M{_x(0):g} {_y(0):g}L{_x(100):g} {_y(100):g}"/>',
        label(LEFT + SIDE / 2, TOP + SIDE + 32, f"expected {metric}", "middle"),
        upright(14, TOP + SIDE / 2, f"reached {metric}"),
    ]


def _quarters(kind: str, parts: tuple[Part, ...], radius: int) -> str:
    """Return the means of the parts of a set, joined by a line."""
    places = [(part.estimated, max(0.0, part.reached)) for part in parts]
    points = " ".join(f"{_x(one):.1f},{_y(other):.1f}" for one, other in places)
    dots = "".join(_dot(one, other, radius) for one, other in places)
    return f'<polyline class="{kind} line" points="{points}"/><g class="{kind}">{dots}</g>'


def _dot(expected: float, reached: float, radius: int) -> str:
    return f'<circle cx="{_x(expected):.1f}" cy="{_y(reached):.1f}" r="{radius}"/>'


def _x(expected: float) -> float:
    return LEFT + SIDE * expected / 100


def _y(reached: float) -> float:
    return TOP + SIDE * (1 - reached / 100)
