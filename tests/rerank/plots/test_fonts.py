from pathlib import Path

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from rerank.plots.canvas import BASE, choose_fonts


def make_font(path: Path, family: str, characters: str) -> str:
    """Write a font in which each character is a triangle."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0)), pen.lineTo((500, 0)), pen.lineTo((250, 500)), pen.closePath()
    glyph, glyphs = pen.glyph(), [".notdef", *(f"g{number}" for number in range(len(characters)))]
    builder = FontBuilder(1000)
    builder.setupGlyphOrder(glyphs)
    builder.setupCharacterMap({ord(letter): name for letter, name in zip(characters, glyphs[1:], strict=True)})
    builder.setupGlyf(dict.fromkeys(glyphs, glyph))
    builder.setupHorizontalMetrics(dict.fromkeys(glyphs, (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(), builder.setupPost()
    builder.save(path)
    return str(path)


@pytest.fixture
def fonts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add three fonts to the machine, and a damaged one."""
    (tmp_path / "damaged.ttf").write_bytes(b"no font")
    made = {"B": "\U000f0001\U000f0002", "A": "\U000f0001\U000f0003", "C": "\U000f0001\U000f0002\U000f0004"}
    paths = [make_font(tmp_path / f"{name}.ttf", f"Font {name}", characters) for name, characters in made.items()]
    base_fonts = [entry for entry in font_manager.fontManager.ttflist if entry.name == BASE]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", base_fonts)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(tmp_path / "damaged.ttf"), *paths])


@pytest.mark.parametrize(
    ("texts", "families", "missing"),
    [
        (["abc", "Привет", "שלום"], [BASE], []),
        (["a\U000f0003"], [BASE, "Font A"], []),
        (["a\U000f0001", "\U000f0002"], [BASE, "Font B"], []),
        (
            ["\U000f0003\U000f0004", "\U000f0002\U000f0009\U000f0005"],
            [BASE, "Font C", "Font A"],
            ["\U000f0005", "\U000f0009"],
        ),
    ],
)
def test_choose_fonts_that_cover_all_characters(
    fonts: None, texts: list[str], families: list[str], missing: list[str]
) -> None:
    assert choose_fonts(texts) == (families, missing)
