"""Elements of charts, as SVG text in the text colour of the page and three other colours (`explorer/charts.css`).

The colours can also be distinguished by colour-blind readers, on a light and on a dark page.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from moses_io.files.errors import printable

WIDTH = 400
"""Width of a chart, in SVG units."""

KINDS = ("one", "two", "three")
"""CSS classes of the series, in order."""


class Scale:
    """Maps values to positions from `start` to `end`, with ticks at round values.

    Attributes:
        low: value at `start`.
        high: value at `end`.
        step: distance between two ticks.
        ticks: values of the ticks.

    Args:
        values: values that the scale covers.
        start: first position.
        end: last position.
        max_ticks: approximate number of ticks. Their distance is never smaller than for a range of 1.
    """

    def __init__(self, values: Iterable[float], start: float, end: float, max_ticks: int = 6) -> None:
        covered = list(values)
        low, high = min(covered), max(covered)
        min_step = max(high - low, 1.0) / max_ticks
        power = 10.0 ** math.floor(math.log10(min_step))
        self.step = next(power * each for each in (1, 2, 5, 10) if power * each >= min_step * (1 - 1e-9))
        first = math.floor(low / self.step + 1e-9)
        last = max(math.ceil(high / self.step - 1e-9), first + 1)
        self.low = first * self.step
        self.high = last * self.step
        self.ticks = [number * self.step for number in range(first, last + 1)]
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        """Return the position of a value."""
        return self._start + (self._end - self._start) * (value - self.low) / (self.high - self.low)


def safe(content: object) -> str:
    """Return text for a page, with HTML and control characters escaped."""
    return escape(printable(str(content)))


def cut(content: str, max_length: int) -> str:
    """Return text cut to a maximum number of characters."""
    return content if len(content) <= max_length else f"{content[: max_length - 1]}…"


def figure(title: str, caption: str, height: float, parts: Iterable[str], role: str = "img") -> str:
    """Return a figure: an SVG with a title, and a caption below. Use the role `group` if it has links."""
    return "\n".join(
        [
            f'<figure><svg viewBox="0 0 {WIDTH} {height:g}" role="{role}">',
            f"<title>{safe(title)}</title>",
            *parts,
            f"</svg><figcaption><b>{safe(title)}.</b> {safe(caption)}</figcaption></figure>",
        ]
    )


def label(across: float, down: float, content: object, anchor: str = "start") -> str:
    """Return text at a position, which is its start, middle or end, depending on the anchor."""
    return f'<text x="{across:g}" y="{down:g}" text-anchor="{anchor}">{safe(content)}</text>'


def upright(across: float, middle: float, content: str) -> str:
    """Return vertical text that is read from below, for the left axis."""
    return f'<text transform="translate({across:g} {middle:g}) rotate(-90)" text-anchor="middle">{safe(content)}</text>'


def across_lines(axis: Scale, left: float, right: float) -> list[str]:
    """Return a horizontal line and a label for each tick of a vertical axis."""
    lines = []
    for tick in axis.ticks:
        lines.append(f'<path class="grid" d="M{left:g} {axis(tick):.1f}H{right:g}"/>')
        lines.append(label(left - 6, round(axis(tick) + 4, 1), f"{tick:g}", "end"))
    return lines


def upright_lines(axis: Scale, top: float, bottom: float) -> list[str]:
    """Return a vertical line and a label for each tick of a horizontal axis. The line at 0 is stronger."""
    lines = []
    for tick in axis.ticks:
        kind = "grid" if tick else "zero"
        lines.append(f'<path class="{kind}" d="M{axis(tick):.1f} {top:g}V{bottom:g}"/>')
        lines.append(label(round(axis(tick), 1), bottom + 14, f"{tick:g}", "middle"))
    return lines


def legend(names: Sequence[str], left: float, down: float, kinds: Sequence[str] = KINDS) -> list[str]:
    """Return a row with a mark and the name of each series."""
    parts = []
    for kind, name in zip(kinds, names, strict=False):
        parts.append(f'<rect class="{kind}" x="{left:g}" y="{down - 9:g}" width="10" height="10"/>')
        parts.append(label(left + 15, down, cut(name, 24)))
        left += 30 + 7 * len(cut(name, 24))
    return parts


def bar(kind: str, x: float, y: float, width: float, height: float, hint: str) -> str:
    """Return a bar with a tooltip."""
    geometry = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{max(height, 0.5):.1f}"'
    return f'<rect class="{kind}" {geometry}><title>{safe(hint)}</title></rect>'


def dot(kind: str, x: float, y: float, hint: str, radius: int) -> str:
    """Return a dot with a tooltip."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{safe(hint)}</title></circle>'


def curves(
    title: str,
    caption: str,
    columns: Sequence[tuple[str, str]],
    series: Mapping[str, Sequence[float]],
    axis_names: tuple[str, str],
    kinds: Sequence[str] = KINDS,
) -> str:
    """Return a figure with a line of dots for each of up to three series.

    Args:
        title: title of the figure.
        caption: text below it.
        columns: name of each column, and the note below the name.
        series: value in each column, by the name of the series.
        axis_names: names of the vertical and the horizontal axis.
        kinds: CSS classes of the series.
    """
    left, right, top, bottom = 44, WIDTH - 12, 12, 226
    axis = Scale([value for values in series.values() for value in values], bottom, top)
    step = (right - left) / len(columns)
    middles = [left + step * (index + 0.5) for index in range(len(columns))]
    parts = [*across_lines(axis, left, right), upright(12, (top + bottom) / 2, axis_names[0])]
    for middle, (name, note) in zip(middles, columns, strict=True):
        parts += [
            label(round(middle, 1), bottom + 15, name, "middle"),
            label(round(middle, 1), bottom + 29, note, "middle"),
        ]
    below = bottom + (33 if any(note for _, note in columns) else 19)
    parts.append(label((left + right) / 2, below + 14, axis_names[1], "middle"))
    for radius, kind, (name, values) in zip((5, 4, 3), kinds, series.items(), strict=False):
        positions = [(middle, axis(value)) for middle, value in zip(middles, values, strict=True)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
        parts.append(f'<polyline class="{kind} line" points="{points}"/>')
        for (x, y), value, (column, _) in zip(positions, values, columns, strict=True):
            parts.append(dot(kind, x, y, f"{name}, {column}: {value:.2f}", radius))
    return figure(title, caption, below + 44, [*parts, *legend(list(series), left, below + 36, kinds)])
