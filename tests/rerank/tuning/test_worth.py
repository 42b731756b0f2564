import json
from dataclasses import asdict
from pathlib import Path

import pytest

from rerank.tuning.ablation import BASE, EVERY, Column, Reached, Worth, worth_lines, write_table

DEV = {BASE: Reached(80.0, None), "and F": Reached(81.0, 0.5), EVERY: Reached(81.0, 0.5)}
NEWS = {BASE: Reached(70.123, None), "and F": Reached(100.0, 0.0001), EVERY: Reached(100.0, 0.0001)}
HOW = "BLEU, 5 folds, one run each"


def test_a_column_a_set() -> None:
    columns = {"dev": DEV, "news": NEWS, "a-longer-name": NEWS}
    assert worth_lines(Worth(HOW, columns)) == [
        "What each feature is worth (BLEU, 5 folds, one run each; p against Moses' features, below against all)",
        "features           dev, out of fold       p      news       p  a-longer-name       p",
        "Moses' features               80.00             70.12                  70.12",
        "and F                         81.00  0.5000    100.00  0.0001         100.00  0.0001",
        "and all                       81.00  0.5000    100.00  0.0001         100.00  0.0001",
    ]
    assert worth_lines(Worth(HOW, {"dev": DEV}))[1:3] == [
        "features           dev, out of fold       p",
        "Moses' features               80.00",
    ]


@pytest.mark.parametrize("score", [80.0, 79.0])
def test_features_that_do_not_help_are_told_of(score: float) -> None:
    worse = DEV | {EVERY: Reached(score, 1.0)}
    assert worth_lines(Worth(HOW, {"dev": worse, "news": NEWS}))[-1].startswith("warning: the new features do not help")


def test_the_same_as_json(tmp_path: Path) -> None:
    paths = {"dev": str(tmp_path / "dev.json"), "news": str(tmp_path / "news.json")}
    Path(paths["dev"]).write_text(json.dumps({"how": HOW, "column": plain(DEV)}))
    Path(paths["news"]).write_text(json.dumps({"column": plain(NEWS)}))
    text, rows = tmp_path / "table.txt", tmp_path / "table.json"
    write_table(paths, (str(text), str(rows)))
    assert text.read_text().split("\n") == [*worth_lines(Worth(HOW, {"dev": DEV, "news": NEWS})), ""]
    base, one, _ = json.loads(rows.read_text())
    assert base == {
        "name": BASE,
        "against": "",
        "sets": {"dev": {"score": 80.0, "p_value": None}, "news": {"score": 70.123, "p_value": None}},
    }
    assert (one["name"], one["against"], one["sets"]["news"]["p_value"]) == ("and F", BASE, 0.0001)


def plain(column: Column) -> dict[str, dict[str, float | None]]:
    return {name: asdict(reached) for name, reached in column.items()}
