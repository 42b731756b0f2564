import base64
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from moses_io.filters import Filters
from moses_io.nbest import read_nbest
from rerank.confidence.fitting import MeasuredEstimates
from rerank.linear.collecting import collect
from rerank.linear.ranking import Estimate, Ranking
from rerank.metrics.evaluation import Evaluation, evaluate
from rerank.report.changes import Change, Reranked, find_change, sorted_changes
from rerank.report.listed import find_in_list, merged_list_names, read_listed
from rerank.report.page import CHUNK, EXPLORER, SCRIPTS, Chunks, index, overview, page
from rerank.report.tables import Section

LIST = """\
0 ||| a b x ||| L= 1 T= 1 2 s_x= 1 FromA= 1 FromB= 0 ||| -1 ||| 0=0-1 1=2 ||| 0-0 1-2
0 ||| a <b> c ||| L= 2 T= 3 2 FromA= 1 FromB= 1 ||| -2 ||| 0=0-1 1=2 ||| 9-0
0 ||| a b c ||| L= 2 T= 1 2.5 FromA= 0 FromB= 1 ||| -3 ||| |||
2 ||| a\x1b c ||| L= 1 T= 1 1 FromA= 1 FromB= 1 ||| -1 ||| |||
"""
WEIGHTS = {"L": (0.5,), "T": (-1.0, 1.0), "s_x": (0.25,), "FromA": (0.0,), "FromB": (0.0,)}


class Explored(NamedTuple):
    """A test set and the data read from its list."""

    nbest: Path
    reranked: Reranked
    measured: MeasuredEstimates
    changes: list[Change]
    chunks: Chunks

    def html(self, above: Iterable[str], name: str = "talks") -> str:
        columns = index(self.reranked, self.measured, self.changes, self.chunks.chunk_numbers)
        return "\n".join(page(name, above, self.chunks.elements(), columns))


Explore, Decompressed = Callable[..., Explored], Callable[[str], dict[str, Any]]


def explored_list(path: Path, references: list[list[str]], nbest: str = LIST, more: int = 0) -> Explored:
    """Write and read three sentences: the second has no candidates, the first is reranked. Append empty sentences."""
    path.write_text(nbest)
    source, before, after = ["s0 t0", "s1", "s2\x9b"], ["a b x", "", "a\x1b c"], ["a b c", "", "a\x1b c"]
    reranked = Reranked(
        source=[*source, *[""] * more],
        references=references,
        before=[*before, *[""] * more],
        after=[*after, *[""] * more],
        weights=WEIGHTS,
        filters=Filters(""),
    )
    estimates = {0: Estimate(41.256, 0.75), 2: Estimate(90, None)}
    rows = np.array([[0.1, 0.9], [0.25, 0.75], [1 / 3, 2 / 3]], dtype=np.float32)
    attention = {(0, "moses"): {"fwd\x07": rows}, (0, "reranked"): {"fwd\x07": rows[::-1]}}
    names = merged_list_names(next(read_nbest(str(path))))
    changes, chunks = [], Chunks(reranked, names, attention, BytesIO())
    for listed in read_listed(str(path), references, len(reranked.source), Filters("")):
        candidates = collect([listed.candidates])
        scores = candidates.scores(candidates.space.vector(WEIGHTS))
        change = find_change(listed.candidates, reranked, "chrf", estimates.get(listed.candidates.sentence))
        changes += [change] if change else []
        chunks.add(listed, Ranking(listed.candidates, scores), change.reasons if change else ())
    chunks.finish()
    return Explored(path, reranked, MeasuredEstimates("chrf", estimates), sorted_changes(changes), chunks)


@pytest.fixture
def explore(tmp_path: Path) -> Explore:
    return partial(explored_list, tmp_path / "list")


@pytest.fixture
def decompressed() -> Callable[[str], dict[str, Any]]:
    """Return a function that reads all data elements of a page, by their ids."""

    def read(page: str) -> dict[str, Any]:
        elements = re.findall('<script type="application/octet-stream" id="([a-z0-9-]+)">([^<]*)</script>', page)
        return {name: json.loads(zlib.decompress(base64.b64decode(content))) for name, content in elements}

    return read


REFERENCES = [["a b c", "d", "e"]]
FIGURE = "<figure><svg></svg></figure>"


def written(explored: Explored, lines: tuple[str, ...] = ("row\x07 <1>",)) -> str:
    systems = {"moses": explored.reranked.before, "sys\x1btem": explored.reranked.after}
    evaluation = evaluate(systems, explored.reranked.references)
    chosen, section = ["chosen: 3 of <A>"], Section("title", [["a", "b"], *([line, "1"] for line in lines)])
    return explored.html(overview("talks", "1 of 3 <changed>.", evaluation, chosen, [section], [FIGURE]))


def test_the_page_has_all_sentences_and_their_candidates(explore: Explore, decompressed: Decompressed) -> None:
    text = written(explore(REFERENCES))
    data = decompressed(text)
    assert list(data) == ["chunk-0", "index"]
    assert data["index"]["chunk"] == [0, None, 0]
    assert list(data["chunk-0"]) == ["0", "2"]
    assert data["chunk-0"]["0"]["text"] == ["a b x", "a <b> c", "a b c"]
    assert "<title>moses-rerank: talks</title>" in text and "<h1>moses-rerank: talks</h1>" in text
    assert "<p>chosen: 3 of &lt;A&gt;</p>" in text and "<br>p: two-sided p-value" in text
    assert text.count(FIGURE) == 1 and '<p id="result">1 of 3 &lt;changed&gt;. <a ' in text


OTHER_PROCESS = """
import pathlib, runpy, sys

test = runpy.run_path(sys.argv[1])
page = test["written"](test["explored_list"](pathlib.Path(sys.argv[2]), test["REFERENCES"]))
sys.stdout.buffer.write(page.encode())
"""


def test_the_page_is_reproducible(explore: Explore, tmp_path: Path) -> None:
    """It depends neither on the time nor on the hash seed, which determines the order of sets of strings."""
    arguments = [sys.executable, "-c", OTHER_PROCESS, __file__, str(tmp_path / "other")]
    expected = written(explore(REFERENCES)).encode()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        assert subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, check=True).stdout == expected


def test_a_page_without_references(explore: Explore) -> None:
    explored = explore([])
    facts = find_in_list(str(explored.nbest), [], {"reranked": explored.reranked.after}, Filters(""))
    above = overview("news", "1 of 3 changed.", Evaluation({"reranked": {}}, {}, facts=facts), [], [], [])
    text = explored.html(above)
    assert '<table class="systems">' not in text
    assert "reranked: 2 of 3 translations are in the list, 1 with rank 1, mean rank 2.0" in text


def test_control_characters_are_escaped(explore: Explore) -> None:
    text = written(explore(REFERENCES))
    assert text.replace("\n", "").isprintable()
    for shown in (r"row\x07 &lt;1&gt;", r"<td>sys\x1btem</td>"):
        assert shown in text


def test_special_characters_are_safe_in_html_and_javascript(explore: Explore, decompressed: Decompressed) -> None:
    """NUL is never in the page. U+2028, a line end in JavaScript, is never inside a script."""
    odd = "a\x00\u2028\u0085</script><!--b"
    text = written(explore([[odd, "d", "e"]]), (odd,))
    assert r"a\x00\x85&lt;/script&gt;&lt;!--b" in text.replace("\u2028", "")
    assert not any(each in text for each in ("\x00", "\x85", "<!--b"))
    assert all("\u2028" not in script for script in re.findall("<script.*?</script>", text, re.DOTALL))
    assert "\\u0000" not in json.dumps(decompressed(text))


def test_the_page_is_self_contained(explore: Explore) -> None:
    text = written(explore(REFERENCES))
    loaded: list[str | None] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            loaded.extend(value for name, value in attrs if name in ("src", "href"))

    Links().feed(text)
    assert loaded == ["data:,", "#sentences", "#sentences"]
    assert not re.search(r"https?:|@import|url\(", text)
    assert {f"{name}.js" for name in SCRIPTS} == {part.name for part in EXPLORER.iterdir() if part.name.endswith(".js")}
    named = re.findall(r"find\(\"([a-z]+)\"\)", text)
    assert set(named) <= set(re.findall(r'id="([a-z-]+)"', text))


def chunks(explored: Explored, decompressed: Decompressed) -> list[dict[int, Any]]:
    """Return the decompressed data of all chunks."""
    made = decompressed("\n".join(explored.chunks.elements()))
    return [{int(number): sentence for number, sentence in chunk.items()} for chunk in made.values()]


def test_scores_contributions_and_reasons(explore: Explore, decompressed: Decompressed) -> None:
    """The weights are 0.5 for L, -1 and 1 for T, 0.25 for the sparse feature. BLEU is as in test_changes.py."""
    (chunk,) = chunks(explore([["a b c", "d", "e"]]), decompressed)
    first, other = chunk[0], chunk[2]
    assert first["text"] == ["a b x", "a <b> c", "a b c"] and other["text"] == [r"a\x1b c"]
    assert (first["score"], first["rank"]) == ([1.75, 0, 2.5], [2, 3, 1])
    assert first["features"] == ["L", "T", "FromA", "FromB", "sparse"]
    assert first["parts"] == [[0.5, 1, 1], [1, -1, 1.5], [0, 0, 0], [0, 0, 0], [0.25, 0, 0]]
    assert first["bleu"] == [round(100 * 0.25**0.25, 2), round(100 * 0.125**0.25, 2), 100]
    assert (first["oracle"], first["lists"], other["lists"]) == (2, ["A", "A, B", "B"], ["A, B"])
    assert first["reasons"] == [["L", 0.5], ["T", 0.5], ["FromA", 0], ["FromB", 0], ["sparse", -0.25]]
    assert other["reasons"] == []


def test_both_choices_have_rank_attention_and_alignment(explore: Explore, decompressed: Decompressed) -> None:
    (chunk,) = chunks(explore([["a b c", "d", "e"]]), decompressed)
    moses, reranked = chunk[0]["systems"].values()
    assert (moses["index"], reranked["index"]) == (0, 2)
    assert moses["attention"] == [{"model": r"fwd\x07", "weights": [[0.1, 0.9], [0.25, 0.75], [0.3333, 0.6667]]}]
    assert reranked["attention"][0]["weights"] == moses["attention"][0]["weights"][::-1]
    assert (moses["links"], moses["phrases"]) == ([[0, 0], [1, 2]], [[0, 0, 0, 1], [1, 1, 2, 2]])
    assert (reranked["links"], reranked["phrases"]) == ([], [])
    assert list(chunk[2]["systems"]) == ["moses"]


def test_links_outside_the_sentence_are_not_shown(explore: Explore, decompressed: Decompressed) -> None:
    beyond = "0 ||| a b x ||| L= 1 T= 1 2 FromA= 1 FromB= 0 ||| -1 ||| 9-0\n"
    (chunk,) = chunks(explore([], beyond), decompressed)
    moses, reranked = chunk[0]["systems"].values()
    assert (moses["index"], moses["links"]) == (0, [])
    assert (reranked["index"], reranked["links"], reranked["phrases"]) == (None, [], [])


def test_phrases_outside_the_sentence_are_not_shown(explore: Explore, decompressed: Decompressed) -> None:
    """The source has two words."""
    line = "0 ||| a b x ||| L= 1 T= 1 2 FromA= 1 FromB= 0 ||| -1 ||| {}\n"
    for field, wanted in (("0=0-1 1=2", [[0, 0, 0, 1], [1, 1, 2, 2]]), ("0=0-1 2=2", []), ("0=0-1 1=3", [])):
        (chunk,) = chunks(explore([], line.format(field)), decompressed)
        assert chunk[0]["systems"]["moses"]["phrases"] == wanted


def test_numbering_of_links_follows_the_list(explore: Explore, decompressed: Decompressed) -> None:
    """The line with 1-1 2-1 for a source of two words could be from a chart decoder if it were alone."""
    line = "{} ||| {} ||| L= 1 T= 1 2 FromA= 1 FromB= 0 ||| {} ||| {}\n"
    ours, other = line.format(0, "a b x", -1, "1-1 2-1"), line.format(0, "a b c", -2, "0-0 1-1")
    for nbest, wanted in ((ours, [[0, 0], [1, 0]]), (ours + other, [[1, 1]])):
        (chunk,) = chunks(explore([], nbest), decompressed)
        assert chunk[0]["systems"]["moses"]["links"] == wanted


def test_without_references_there_is_no_oracle(explore: Explore, decompressed: Decompressed) -> None:
    (chunk,) = chunks(explore([]), decompressed)
    assert (chunk[0]["bleu"], chunk[0]["oracle"]) == ([], None)


def test_a_list_that_is_not_merged_has_no_list_names(explore: Explore, decompressed: Decompressed) -> None:
    (chunk,) = chunks(explore([], "0 ||| a b c ||| L= 1 T= 1 2 FromA= 1 ||| 0\n"), decompressed)
    assert chunk[0]["lists"] == []


def test_chunks_keep_the_order_of_the_list(explore: Explore, decompressed: Decompressed) -> None:
    ids = [*range(50, 0, -1), 0]
    lines = (f"{number} ||| a ||| L= 1 T= 1 1 FromA= 1 FromB= 1 ||| 0\n" for number in ids)
    explored = explore([], "".join(lines), more=60)
    made = chunks(explored, decompressed)
    assert [len(chunk) for chunk in made] == [CHUNK, CHUNK, 11]
    assert [number for chunk in made for number in chunk] == ids
    assert explored.chunks.chunk_numbers == {number: position // CHUNK for position, number in enumerate(ids)}


def columns(explored: Explored, places: dict[int, int]) -> dict[str, Any]:
    return index(explored.reranked, explored.measured, explored.changes, places)


def test_columns_have_one_row_per_sentence(explore: Explore) -> None:
    explored = explore([["a b c", "d", "e"], ["a b c", "f", "g"]])
    assert columns(explored, {0: 0, 2: 1}) == {
        "metric": "chrf",
        "source": ["s0 t0", "s1", r"s2\x9b"],
        "references": [["a b c", "d", "e"], ["a b c", "f", "g"]],
        "before": ["a b x", "", r"a\x1b c"],
        "after": ["a b c", "", r"a\x1b c"],
        "gain": [pytest.approx(100 * (1 - 0.125**0.25 * 2**0.25), abs=0.006), None, None],
        "expected": [41.26, None, 90],
        "helped": [0.75, None, None],
        "score_gain": [0.75, None, None],
        "chunk": [0, None, 1],
    }


def test_columns_without_any_value_are_empty(explore: Explore) -> None:
    made = columns(explore([]), {})
    assert (made["references"], made["gain"], made["score_gain"]) == ([], [], [0.75, None, None])
