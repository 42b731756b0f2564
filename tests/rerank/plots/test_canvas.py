import time
from collections.abc import Callable
from pathlib import Path
from xml.dom import minidom

import matplotlib
import pytest
from PIL import Image

from moses_io.files.errors import InputError
from rerank.plots.canvas import FORMATS, canvas, format_of, label, legend, names, series_style


def draw(path: Path, *words: str) -> bytes:
    with canvas(str(path), words) as figure:
        axes = figure.subplots()
        axes.imshow([[0, 1], [1, 0]], interpolation="none")
        axes.set_xticks(range(len(words)), words)
        axes.set_xlim(-0.5, len(words) + 0.5)
        axes.legend([axes.plot([0, 1], [0, 1])[0] for _ in words], words)
    return path.read_bytes()


def test_the_file_extension_gives_the_format() -> None:
    assert [format_of(name) for name in ("a.png", "b/c.SVG", "-.pdf")] == ["png", "svg", "pdf"]
    for name in ("-", "a.jpg", "png", "a.png.gz", ""):
        with pytest.raises(InputError, match=rf"--output {name}: expected a name in \.png, \.svg or \.pdf"):
            format_of(name)


def test_pictures_are_valid_and_reproducible(tmp_path: Path) -> None:
    """Neither the time nor the matplotlib settings of the user change a picture."""
    pictures = {form: draw(tmp_path / f"one.{form}", "word") for form in FORMATS}
    time.sleep(1.1 - time.time() % 1)
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}):
        assert {form: draw(tmp_path / f"two.{form}", "word") for form in FORMATS} == pictures
        assert matplotlib.rcParams["font.size"] == 30
    assert pictures["pdf"].startswith(b"%PDF-") and pictures["pdf"].rstrip().endswith(b"%%EOF")
    assert not any(b"Date" in content or b"dc:date" in content for content in pictures.values())
    with Image.open(tmp_path / "one.png") as picture:
        picture.verify()
        assert picture.format == "PNG"
    minidom.parse(str(tmp_path / "one.svg"))
    assert (tmp_path / "one.png").stat().st_mode & 0o111 == 0


def test_words_are_text_without_math_markup(tmp_path: Path, drawn: Callable[[Path], list[str]]) -> None:
    words = ("_x", "$a^2$", "a<b&c", r"\alpha", "Привет", "שלום", "%", label("\x1b[2J\ufffe\udcff"))
    draw(tmp_path / "a.svg", *words)
    shown = drawn(tmp_path / "a.svg")
    assert [shown.count(word) for word in words] == [2] * len(words)


def test_characters_without_a_glyph_are_one_warning(
    tmp_path: Path, progress: None, capfd: pytest.CaptureFixture[str]
) -> None:
    draw(tmp_path / "a.png", "b\U0010fffdc\U000ffffd\U0010fffd")
    assert capfd.readouterr().err == (
        "warning: no font of this machine has 2 characters of these words: \U000ffffd \U0010fffd\n"
    )
    draw(tmp_path / "a.png", "".join(map(chr, range(0xFFF00, 0xFFF15))))
    assert capfd.readouterr().err.endswith(
        f"has 21 characters of these words: {' '.join(map(chr, range(0xFFF00, 0xFFF14)))} …\n"
    )
    draw(tmp_path / "a.png", "a\u200b \u00ad\n")
    assert capfd.readouterr().err == ""


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), canvas(str(tmp_path / "a.png"), []):
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="No such file"):
        draw(tmp_path / "nowhere" / "a.png")


def test_the_resolution_of_a_large_picture_is_reduced(tmp_path: Path) -> None:
    with canvas(str(tmp_path / "a.png"), []) as figure:
        figure.set_layout_engine("none")
        figure.set_size_inches(400, 0.1)
        figure.add_axes((0, 0, 1, 1))
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width < 13_000


def test_labels_are_shortened_and_escaped() -> None:
    assert label("x" * 40) == "x" * 40
    assert label("x" * 41) == "x" * 39 + "…"
    assert label("\ta\x00\uffff") == r"\ta\x00" + "\ufffd"


@pytest.mark.parametrize(
    ("paths", "wanted"),
    [
        (["a/b"], ["b"]),
        (["a/b", "c/d/"], ["b", "d"]),
        (["x/a/b", "x/c/b", "w/y"], ["a/b", "c/b", "w/y"]),
        (["x" * 50 + "1", "x" * 50 + "2"], ["…" + "x" * 38 + "1", "…" + "x" * 38 + "2"]),
        ([f"{n}{'x' * 70}" for n in (1, 2)], ["1" + "x" * 38 + "…", "2" + "x" * 38 + "…"]),
        (["x" * 50 + str(n) + "x" * 50 for n in (1, 2)], ["1 " + "x" * 37 + "…", "2 " + "x" * 37 + "…"]),
    ],
)
def test_names_are_the_shortest_that_differ(paths: list[str], wanted: list[str]) -> None:
    assert names(paths) == wanted


def test_the_same_path_twice_is_an_error() -> None:
    with pytest.raises(InputError, match=r"'\./a' is named twice"):
        names(["a", "b", "./a"])


@pytest.mark.parametrize("labels", [["a", "_b"], ["x" * 40 + str(number) for number in range(60)]])
def test_a_legend_leaves_room_for_the_plot(
    labels: list[str], tmp_path: Path, drawn: Callable[[Path], list[str]]
) -> None:
    with canvas(str(tmp_path / "a.svg"), labels) as figure:
        axes = figure.subplots()
        legend(figure, labels)
    assert set(labels) <= set(drawn(tmp_path / "a.svg"))
    assert axes.get_window_extent().height > 2 * figure.dpi
    assert len({tuple(series_style(number).values()) for number in range(56)}) == 56
