"""What the documentation shows is what comes out."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "python.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def test_the_notebook_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`…` stands for whatever a line has there."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 4
    for code, shown in blocks:
        exec(compile(code, str(PAGE), "exec"), names)
        out, err = capfd.readouterr()
        assert err == ""
        assert re.fullmatch(re.escape(shown).replace("…", ".*"), out), out


def test_pictures_are_those_of_the_commands_above_them() -> None:
    """Each is small, and none is left over."""
    page = (DOCS / "plots.md").read_text(encoding="utf-8")
    shown = re.findall(r"^!\[.+\]\((.+)\)$", page, re.MULTILINE)
    assert shown == re.findall(r"^(?!!).*--output docs/(\S+)", page, re.MULTILINE)
    assert {DOCS / name for name in shown} == set((DOCS / "plots").iterdir())
    assert all(path.stat().st_size < 150_000 for path in (DOCS / "plots").iterdir())
