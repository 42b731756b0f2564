"""The common style of all plots: fonts, colours, labels, and the file that a figure is written to."""

import io
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from features.progress import log
from moses_io.files.errors import InputError, counted, printable, shown
from moses_io.files.streams import open_output

BASE = "DejaVu Sans"
"""Font family that comes with matplotlib."""
INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")
"""Unicode categories of characters that need no glyph."""


def choose_fonts(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return font families that together cover the texts, and the sorted characters that no family has.

    `BASE` comes first. Each further family is the one that has most of the missing characters. On a tie it is the first
    by name.
    """
    characters = {character for text in texts for character in text}
    missing = {character for character in characters if unicodedata.category(character) not in INVISIBLE} - _characters(
        BASE
    )
    families, others = [BASE], _others() if missing else {}
    while missing and others:
        best = max(others, key=lambda name: len(others[name] & missing))
        if not others[best] & missing:
            break
        families.append(best)
        missing -= others.pop(best)
    return families, sorted(missing)


def _others() -> dict[str, set[str]]:
    """Return the characters of each family, sorted by name, without `BASE` and the other fonts of matplotlib."""
    manager = font_manager.fontManager
    known = {entry.fname for entry in manager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        try:
            manager.addfont(path)
        except (OSError, RuntimeError):  # damaged, or of a kind that cannot be drawn
            continue
    matplotlib_fonts = Path(matplotlib.get_data_path())
    names = {entry.name for entry in manager.ttflist if matplotlib_fonts not in Path(entry.fname).parents}
    # The font LastResort has a placeholder for every character.
    return {
        name: _characters(name) for name in sorted(names - {BASE}) if "lastresort" not in name.replace(" ", "").lower()
    }


def _characters(family: str) -> set[str]:
    """Return the characters that a family has a glyph for, empty if its file cannot be read."""
    properties = font_manager.FontProperties(family=[family])
    try:
        path = font_manager.findfont(properties, fallback_to_default=False, rebuild_if_missing=False)
        return {chr(code) for code in font_manager.get_font(path).get_charmap()}
    except (OSError, RuntimeError, ValueError):
        return set()


FORMATS: dict[str, dict[str, Any]] = {
    "png": {},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None}},
}
"""Options of `savefig` by format. They leave out dates, so that equal figures give equal bytes."""

COLUMN = 3.4
"""Width of a column of a paper, in inches."""
DPI = 200
MAX_PIXELS = 12_000
"""Approximate maximum of pixels per side of a picture."""
MAX_LABEL_LENGTH = 40
"""Maximum number of characters of a label."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Colours that colour-blind readers can distinguish (Okabe & Ito 2008). Light colours come late, and black last."""
MARKERS = "osD^vPX*"

STYLE: Any = {
    "font.size": 8, "axes.titlesize": 8, "legend.fontsize": 7, "xtick.labelsize": 7, "ytick.labelsize": 7,
    "axes.linewidth": 0.6, "lines.linewidth": 1.2, "lines.markersize": 3.5, "legend.frameon": False,
    "axes.grid": True, "grid.color": "#dddddd", "grid.linewidth": 0.5, "axes.axisbelow": True,
    "text.parse_math": False, "axes.formatter.use_mathtext": False,
    "svg.fonttype": "none", "svg.hashsalt": "moses-rerank", "pdf.fonttype": 42,
}  # fmt: skip


def format_of(output: str) -> str:
    """Return the format of a picture by the ending of its name. Raise `InputError` for another ending."""
    format_name = Path(output).suffix.lower().removeprefix(".")
    if format_name not in FORMATS:
        raise InputError(f"--output {output}: expected a name in .png, .svg or .pdf")
    return format_name


@contextmanager
def canvas(output: str, texts: Iterable[str]) -> Iterator[Figure]:
    """Yield a figure to draw on, and write it to a file when the block ends without an error.

    Equal figures give equal bytes.

    Args:
        output: a name in `.png`, `.svg` or `.pdf`.
        texts: texts from the input that will be drawn, as `label` returns them. A warning lists characters that no font
            of this machine has.

    Raises:
        InputError: the name has another ending, or the file cannot be written.
    """
    format_name = format_of(output)
    families, missing = choose_fonts(texts)
    if missing:
        some = " ".join(missing[:20]) + (" …" if len(missing) > 20 else "")
        log.warning(f"no font of this machine has {counted(len(missing), 'character')} of these words: {some}")
    with warnings.catch_warnings(), matplotlib.rc_context():
        # matplotlib warns once per missing glyph. The message above names all of them.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE | {"font.family": families})
        figure = Figure(figsize=(COLUMN, COLUMN), layout="constrained")
        yield figure
        drawn = io.BytesIO()
        dpi = min(DPI, MAX_PIXELS / max(figure.get_size_inches()))
        figure.savefig(drawn, format=format_name, dpi=dpi, bbox_inches="tight", pad_inches=0.04, **FORMATS[format_name])
    with open_output(output) as stream:
        stream.write(drawn.getvalue())


def legend(figure: Figure, labels: Sequence[str]) -> None:
    """Add a legend above a figure. The figure grows by its height.

    The series have the styles of `series_style`, in order.
    """
    lines = [Line2D([], [], **series_style(number)) for number in range(len(labels))]
    columns = 2 if max(map(len, labels)) < MAX_LABEL_LENGTH / 2 else 1
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.15 * len(labels) / columns)
    figure.legend(lines, labels, loc="outside upper center", ncols=columns)


def series_style(number: int) -> dict[str, Any]:
    """Return colour and marker of a series by its number. 56 series have different styles."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def label(text: str) -> str:
    """Return a text as it is drawn: at most `MAX_LABEL_LENGTH` characters, unprintable ones escaped or replaced."""
    return _drawn(text if len(text) <= MAX_LABEL_LENGTH else f"{text[: MAX_LABEL_LENGTH - 1]}…")


def _drawn(text: str) -> str:
    return printable(text).translate({0xFFFE: "\ufffd", 0xFFFF: "\ufffd"})


def names(paths: Sequence[str]) -> list[str]:
    """Return names that distinguish files or folders in a picture: the shortest ends of their paths that differ.

    Long names are cut at the end. If they are then equal, they are cut at the beginning, or else numbered.

    Raises:
        InputError: a path is given twice.
    """
    parts = [Path(path).absolute().parts for path in paths]
    for index, path_parts in enumerate(parts):
        if path_parts in parts[:index]:
            raise InputError(f"{shown(paths[index])} is named twice")
    sizes = range(1, max(map(len, parts)) + 1)
    tails = next(
        tail for size in sizes if len(set(tail := ["/".join(path_parts[-size:]) for path_parts in parts])) == len(parts)
    )
    candidates = (
        [label(tail) for tail in tails],
        [_drawn(tail if len(tail) <= MAX_LABEL_LENGTH else f"…{tail[1 - MAX_LABEL_LENGTH :]}") for tail in tails],
        [label(f"{number} {tail}") for number, tail in enumerate(tails, start=1)],
    )
    return next(candidate for candidate in candidates if len(set(candidate)) == len(parts))
