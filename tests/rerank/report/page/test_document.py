import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

from rerank.metrics.filters import Filters
from rerank.report.evaluation import Evaluation, evaluate, look_up
from rerank.report.page.document import EXPLORER, SCRIPTS, Overview

Explore, Unpacked = Callable[..., Any], Callable[[str], dict[str, Any]]
REFERENCES = [["a b c", "d", "e"]]
FIGURE = "<figure><svg></svg></figure>"


def written(explored: Any, lines: tuple[str, ...] = ("worth\x07 <1>",)) -> str:
    systems = {"moses": explored.reranked.before, "sys\x1btem": explored.reranked.after}
    evaluation = evaluate(systems, explored.reranked.references)
    changed, chosen = "1 of 3 sentences changed", ["chosen: 3 of <A>"]
    return str(explored.html(Overview("talks", evaluation, changed, chosen, lines, [FIGURE])))


def test_page_has_all_sentences_and_their_candidates(explore: Explore, unpacked: Unpacked) -> None:
    text = written(explore(REFERENCES))
    data = unpacked(text)
    assert list(data) == ["chunk-0", "index"]
    assert data["index"]["chunk"] == [0, None, 0]
    assert list(data["chunk-0"]) == ["0", "2"]
    assert data["chunk-0"]["0"]["text"] == ["a b x", "a <b> c", "a b c"]
    assert "<title>moses-rerank: talks</title>" in text and "<h1>moses-rerank: talks</h1>" in text
    assert "<p>chosen: 3 of &lt;A&gt;</p>" in text and "<br>p: how often systems" in text
    assert text.count(FIGURE) == 1 and "<p>1 of 3 sentences changed. <a " in text


def test_page_is_the_same_for_the_same_content(explore: Explore) -> None:
    assert written(explore(REFERENCES)) == written(explore(REFERENCES))


def test_page_without_references(explore: Explore) -> None:
    explored = explore([])
    facts = look_up(str(explored.nbest), [], {"reranked": explored.reranked.after}, Filters(""))
    overview = Overview("news", Evaluation({"reranked": {}}, {}, facts=facts), "1 of 3 sentences changed", [], [], [])
    text = explored.html(overview)
    assert '<table class="systems"></table>' in text
    assert "reranked: 2 of 3 lines are in the list, 1 first in it, place 2.0 in the mean" in text


def test_no_text_steers_what_reads_the_page(explore: Explore) -> None:
    text = written(explore(REFERENCES))
    assert text.replace("\n", "").isprintable()
    for shown in (r"worth\x07 &lt;1&gt;", r"<td>sys\x1btem</td>"):
        assert shown in text


def test_characters_that_end_lines_or_text_elsewhere(explore: Explore, unpacked: Unpacked) -> None:
    """NUL never is in the page; U+2028, which ends a line of JavaScript, only where no script reads it as one."""
    odd = "a\x00\u2028\u0085</script><!--b"
    text = written(explore([[odd, "d", "e"]]), (odd,))
    assert r"a\x00\x85&lt;/script&gt;&lt;!--b" in text.replace("\u2028", "")
    assert not any(each in text for each in ("\x00", "\x85", "<!--b"))
    assert all("\u2028" not in script for script in re.findall("<script.*?</script>", text, re.DOTALL))
    assert "\\u0000" not in json.dumps(unpacked(text))


def test_page_asks_no_network_and_all_its_parts_are_in_it(explore: Explore) -> None:
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
