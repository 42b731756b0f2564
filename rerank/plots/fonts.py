"""Fonts of the machine that have the letters of a text."""

import unicodedata
from collections.abc import Iterable
from pathlib import Path

import matplotlib
from matplotlib import font_manager

BASE = "DejaVu Sans"
"""Comes with matplotlib."""
INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")
"""Categories of letters that need no glyph."""


def choose_fonts(texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return families that together have the glyphs of texts, `BASE` first, and the letters that no family has.

    Of the fonts that are left the one that has most of what is missing comes next, of equal ones the first by name.
    """
    letters = {letter for text in texts for letter in text}
    missing = {letter for letter in letters if unicodedata.category(letter) not in INVISIBLE} - _letters(BASE)
    families, others = [BASE], _others() if missing else {}
    while missing and others:
        best = max(others, key=lambda name: len(others[name] & missing))
        if not others[best] & missing:
            break
        families.append(best)
        missing -= others.pop(best)
    return families, sorted(missing)


def _others() -> dict[str, set[str]]:
    """Return the letters of all families in the order of their names, but `BASE` and those that matplotlib brings."""
    manager = font_manager.fontManager
    known = {entry.fname for entry in manager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known):
        try:
            manager.addfont(path)
        except (OSError, RuntimeError):  # damaged, or of a kind that cannot be drawn
            continue
    own = Path(matplotlib.get_data_path())
    names = {entry.name for entry in manager.ttflist if own not in Path(entry.fname).parents}
    return {
        name: _letters(name) for name in sorted(names - {BASE}) if "lastresort" not in name.replace(" ", "").lower()
    }


def _letters(family: str) -> set[str]:
    """Return what a family has a glyph for; nothing if its file is gone."""
    properties = font_manager.FontProperties(family=[family])
    try:
        path = font_manager.findfont(properties, fallback_to_default=False, rebuild_if_missing=False)
        return {chr(code) for code in font_manager.get_font(path).get_charmap()}
    except (OSError, RuntimeError, ValueError):
        return set()
