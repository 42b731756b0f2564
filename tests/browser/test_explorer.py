import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rerank.report.changes import MOSES, RERANKED

Browse, Luminance = Callable[..., Any], Callable[[str], float]

BY, KEYS = (
    "css selector",
    {"enter": "\ue007", "escape": "\ue00c", "left": "\ue012", "right": "\ue014", "up": "\ue013", "down": "\ue015"},
)


def until(browser: Any, met: Callable[[Any], bool]) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 60, 0.02).until(met)


def wait(browser: Any, script: str, *arguments: object) -> None:
    until(browser, lambda driver: driver.execute_script(f"return {script}", *arguments))


def texts(browser: Any, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
    return list(browser.execute_script(script, selector))


def click(browser: Any, selector: str) -> None:
    browser.find_element(BY, selector).click()


def press(browser: Any, keys: str) -> None:
    browser.switch_to.active_element.send_keys(keys)


def opened(browser: Any, sentence: int) -> None:
    """Wait until a sentence and its candidates are displayed, and check the address."""
    wait(browser, "document.querySelector('#reading h2')?.textContent === arguments[0]", f"Sentence {sentence}")
    wait(browser, "document.querySelector('.candidates') !== null")
    assert browser.current_url.endswith(f"#s{sentence}")


def closed(browser: Any) -> None:
    wait(browser, "document.querySelector('#sentence').hidden")
    assert browser.current_url.endswith("#sentences")


def ids(browser: Any) -> list[int]:
    return [int(name) for name in texts(browser, ".list tbody th")]


def test_search_and_filters(browse: Browse, explored: Any) -> None:
    browser, changed = browse(), {change.sentence: change for change in explored.changes}
    every = len(explored.reranked.source)
    assert sorted(ids(browser)) == list(range(every))
    assert texts(browser, "#count") == [f"{every} of {every} sentences"]
    word = explored.reranked.references[0][3].split(" ")[1]
    lines = [*explored.reranked.references, explored.reranked.source, explored.reranked.before, explored.reranked.after]
    having = [number for number in range(every) if any(word in each[number].lower() for each in lines)]
    press(browser, "/")
    press(browser, word.upper())
    assert sorted(ids(browser)) == having and 0 < len(having) < every
    assert texts(browser, "#count") == [f"{len(having)} of {every} sentences"]
    browser.find_element(BY, "#search").clear()
    improved = {number for number, change in changed.items() if change.gain and change.gain > 0}
    unchanged = set(range(every)) - set(changed)
    for kind, kept in (("changed", changed), ("higher BLEU", improved), ("not changed", unchanged)):
        click(browser, f"[value='{kind}']")
        assert sorted(ids(browser)) == sorted(kept) and kept
    press(browser, "/")
    assert browser.switch_to.active_element.get_attribute("id") == "search"


def test_the_list_is_sorted_by_its_columns(browse: Browse, explored: Any) -> None:
    browser, gains = browse(), {change.sentence: change.gain or 0.0 for change in explored.changes}
    fell, rose = (sorted(gains, key=lambda number: (sign * gains[number], number)) for sign in (1, -1))
    assert ids(browser)[: len(gains)] == rose and gains[rose[0]] > 0 > gains[fell[0]]
    click(browser, "[data-key='gain']")
    assert ids(browser)[: len(gains)] == fell
    assert browser.find_element(BY, "[aria-sort]").get_attribute("aria-sort") == "ascending"
    assert browser.switch_to.active_element.get_attribute("data-key") == "gain"
    click(browser, "[data-key='expected']")
    estimates = explored.estimates
    assert ids(browser)[: len(estimates)] == sorted(estimates, key=lambda number: estimates[number].expected)
    click(browser, "[data-key='id']")
    assert ids(browser) == list(range(len(explored.reranked.source)))


def test_a_sentence_opens_by_click_address_and_keys(browse: Browse, explored: Any) -> None:
    browser = browse("#s7")
    opened(browser, 7)
    assert browser.title == "Sentence 7, moses-rerank: the <set>"
    press(browser, KEYS["escape"])
    closed(browser)
    assert browser.title == "moses-rerank: the <set>"
    assert browser.switch_to.active_element.text == "7"
    order = ids(browser)
    click(browser, f"[data-id='{order[1]}'] td.words")
    opened(browser, order[1])
    for key, rank in ((KEYS["right"], 2), ("j", 3), (KEYS["left"], 2), ("k", 1)):
        press(browser, key)
        opened(browser, order[rank])
        assert browser.switch_to.active_element.text == f"Sentence {order[rank]}"
    click(browser, "#next")
    opened(browser, order[2])
    assert browser.switch_to.active_element.get_attribute("id") == "next"
    for rank in (1, 0):
        click(browser, "#previous")
        opened(browser, order[rank])
    assert not browser.find_element(BY, "#previous").is_enabled()
    assert browser.switch_to.active_element.text == f"Sentence {order[0]}"
    click(browser, "#close")
    closed(browser)
    press(browser, KEYS["enter"])
    opened(browser, order[0])
    assert texts(browser, "#reading dd")[:2] == [
        explored.reranked.source[order[0]],
        explored.reranked.references[0][order[0]],
    ]
    press(browser, "/")
    closed(browser)
    assert browser.switch_to.active_element.get_attribute("id") == "search"


def test_the_back_button_returns_to_the_previous_view(browse: Browse) -> None:
    for began, seen in (("#charts", "charts"), ("#sentences", "sentences")):
        browser = browse(began)
        browser.execute_script("location.hash = 's7'")
        opened(browser, 7)
        browser.back()
        wait(browser, "document.querySelector('#sentence').hidden")
        top = browser.execute_script("return document.getElementById(arguments[0]).getBoundingClientRect().top", seen)
        focused = browser.switch_to.active_element
        assert (abs(top) < 2, focused.text == "7") == (began == "#charts", began == "#sentences")


def test_an_address_of_a_missing_sentence_shows_a_message(browse: Browse) -> None:
    browser = browse("#s99999")
    assert texts(browser, "#failure") == ["There is no sentence 99999"]
    for shown in ("#failure", ".list"):
        assert browser.execute_script("return document.querySelector(arguments[0]).checkVisibility()", shown)
    browser.execute_script("location.hash = 's7'")
    opened(browser, 7)
    assert not browser.find_element(BY, "#failure").is_displayed()


def test_candidates_are_sorted_and_show_their_values(browse: Browse, explored: Any) -> None:
    change = next(each for each in explored.changes if each.gain and each.sentence < 30)
    browser = browse(f"#s{change.sentence}")
    opened(browser, change.sentence)
    rows = ".candidates tbody tr:not(.more)"
    first = texts(browser, f"{rows}:first-child td")
    assert first[1] == "1" and first[4].startswith(change.texts[RERANKED]) and "reranked" in first[4]
    click(browser, ".candidates [data-key='position']")
    places = [int(place) for place in texts(browser, f"{rows} td:first-child")]
    assert places == list(range(1, len(places) + 1))
    assert texts(browser, f"{rows}:first-child td")[4].startswith(change.texts[MOSES])
    click(browser, ".candidates [data-key='bleu']")
    scores = [float(score) for score in texts(browser, f"{rows} td:nth-child(3)")]
    assert scores == sorted(scores, reverse=True) and texts(browser, f"{rows}:first-child .tag")[-1] == "oracle"
    click(browser, f"{rows}:first-child .parts")
    names = texts(browser, ".numbers tr > th[scope=row]")
    assert set(names) == set(explored.reranked.weights) - {"UnknownWordPenalty0"}
    assert texts(browser, ".reason span") == [name for name, _ in change.reasons]


@pytest.mark.parametrize("sentence", [30, 32])
def test_heat_maps_show_the_attention_of_the_models(browse: Browse, explored: Any, sentence: int) -> None:
    browser = browse(f"#s{sentence}")
    opened(browser, sentence)
    changed = explored.reranked.before[sentence] != explored.reranked.after[sentence]
    for system, button in ((RERANKED, 1), (MOSES, 0)) if changed else ((MOSES, 0),):
        if changed:
            browser.find_elements(BY, ".switch button")[button].click()
        maps = browser.find_elements(BY, ".map")
        for attention, shown in zip(explored.attention[sentence, system].values(), maps[:2], strict=True):
            rows = [row.find_elements(BY, "td") for row in shown.find_elements(BY, "tbody tr")]
            numbers = [[float(cell.get_attribute("title").rpartition(": ")[2]) for cell in row] for row in rows]
            assert numbers == pytest.approx(attention.round(4), abs=1e-6)
            assert rows[0][0].get_attribute("aria-label") == rows[0][0].get_attribute("title")
    source = explored.reranked.source[sentence].split(" ")
    assert texts(browser, ".map:first-child thead th") == source
    assert texts(browser, ".map h4")[-1] == "Moses: links of words, and phrases"
    browser.find_element(BY, ".map:last-child tbody td").click()
    assert texts(browser, ".map:last-child output")[0].endswith(f" \u2068{source[0]}\u2069: linked, same phrase")
    linked = browser.find_element(BY, ".map:last-child tbody tr:first-child td").get_attribute("title")
    assert linked.endswith(": linked, same phrase")
    assert texts(browser, ".phrases li")[0].startswith(f"{source[0]} → ")


def test_sentences_opened_before_do_not_change_the_view(browse: Browse, explored: Any) -> None:
    """A sentence that is opened twice before its candidates are loaded has them once.

    Its maps are those of the reranked choice.
    """
    changed = next(each for each in range(20) if explored.reranked.before[each] != explored.reranked.after[each])
    kept = next(each for each in range(20) if explored.reranked.before[each] == explored.reranked.after[each])
    browser = browse("")
    for sentence in (changed, kept, changed):
        browser.execute_script("location.hash = arguments[0]", f"s{sentence}")
    opened(browser, changed)
    browser.execute_script("return new Promise((wait) => setTimeout(wait, 500))")
    assert len(browser.find_elements(BY, ".candidates")) == 1
    assert texts(browser, ".switch [aria-pressed=true]") == [RERANKED]


def test_html_in_the_list_is_escaped(browse: Browse) -> None:
    browser = browse("#s30")
    opened(browser, 30)
    words = texts(browser, ".candidates td.words > span")
    assert sorted(words) == ["the <b>house</b>", "the <script>alert(1)</script> house"]
    assert browser.execute_script("return document.querySelectorAll('#reading :is(script, dd b, td b)').length") == 0
    resources = (
        "return performance.getEntriesByType('resource').filter((each) => !each.name.startsWith('data:')).length"
    )
    assert browser.execute_script(resources) == 0


def test_without_references_the_clearest_decision_is_first(browse: Browse, explored: Any, unjudged: Path) -> None:
    browser = browse(path=unjudged)
    assert texts(browser, ".list thead th") == [
        "Id",
        "Change",
        "Source",
        "Expected BLEU",
        "P(better)",
        "Model score gain",
    ]
    changes = sorted(explored.changes, key=lambda change: (-change.score_gain, change.sentence))
    assert ids(browser)[: len(changes)] == [change.sentence for change in changes]
    assert len(texts(browser, "#kinds label")) == 3
    click(browser, ".list a")
    opened(browser, changes[0].sentence)
    assert texts(browser, "#reading dt") == ["source", "moses", "reranked"]
    assert "BLEU" not in "".join(texts(browser, ".candidates th")) and "oracle" not in texts(browser, ".tag")


def test_other_scripts_and_writing_directions(browse: Browse) -> None:
    browser = browse("#s31")
    opened(browser, 31)
    direction = "return [...document.querySelectorAll('dd')].map((each) => getComputedStyle(each).direction)"
    assert browser.execute_script(direction) == ["rtl", "ltr", "rtl", "rtl"]
    press(browser, "/")
    press(browser, "東京")
    assert ids(browser) == [32]
    browser = browse("#s32")
    opened(browser, 32)
    assert r"going \x1b[2J東京" in texts(browser, ".candidates td.words > span")


def test_a_sentence_without_candidates_shows_a_message(browse: Browse) -> None:
    browser = browse("#s33")
    wait(browser, "document.querySelector('#reading').textContent.includes('no candidates of this sentence')")


def test_the_displayed_sentences_can_be_saved(browse: Browse, explored: Any, tmp_path: Path) -> None:
    browser = browse()
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    click(browser, "[value='changed']")
    order = ids(browser)
    click(browser, "#save")
    saved = tmp_path / "sentences.tsv"
    until(browser, lambda _: saved.exists())
    head, *rows = [line.split("\t") for line in saved.read_text(encoding="utf-8").split("\n")[:-1]]
    assert head[:5] == ["id", "gain", "expected", "p_better", "model score gain"]
    assert head[5:] == ["source", "reference", "moses", "reranked"]
    assert [int(row[0]) for row in rows] == order
    changes = {change.sentence: change for change in explored.changes}
    for row in rows:
        change = changes[int(row[0])]
        assert float(row[1]) == pytest.approx(100 * (change.gain or 0), abs=0.006)
        assert float(row[4]) == pytest.approx(change.score_gain, rel=1e-4)
        assert row[5:] == list(change.texts.values())


@pytest.mark.parametrize("fragment", ["", "#s3"])
def test_a_narrow_window_has_no_horizontal_scroll(browse: Browse, fragment: str) -> None:
    browser = browse(fragment, width=400)
    if fragment:
        opened(browser, 3)
    assert browser.execute_script("return document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_light_and_dark(
    browse: Browse, explored: Any, luminance: Luminance, scheme: str
) -> None:
    """WCAG requires a contrast of 4.5."""
    browser = browse(f"#s{explored.changes[0].sentence}", scheme=scheme)
    opened(browser, explored.changes[0].sentence)
    colours = "const s = getComputedStyle(document.querySelector(arguments[0])); return [s.color, s.backgroundColor]"
    page = luminance(browser.execute_script(colours, "body")[1])
    assert (page < 0.2) == (scheme == "dark")
    for selector in ("body", ".judged", "a", "dd del, dd ins", "dt", ".candidates th button", ".tag", ".map th"):
        text, behind = browser.execute_script(colours, selector)
        ground = page if behind == "rgba(0, 0, 0, 0)" else luminance(behind)
        low, high = sorted((luminance(text), ground))
        assert (high + 0.05) / (low + 0.05) >= 4.5, selector


@pytest.mark.parametrize("name", ["index", "chunk-0"])
def test_damaged_data_show_a_message(browse: Browse, report: Path, tmp_path: Path, name: str) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(re.sub(f'id="{name}">[^<]*', f'id="{name}">AAAA', report.read_text(encoding="utf-8")), "utf-8")
    browser = browse("#s3", path=broken, ready=name != "index")
    wait(browser, "document.querySelector('#failure').checkVisibility()")
    assert texts(browser, "#failure")[0].startswith("The sentences cannot be shown: ")


def test_the_displayed_changed_sentences_are_printed(browse: Browse, explored: Any) -> None:
    browser, improved = browse(), [change for change in explored.changes if change.gain and change.gain > 0]
    for kind, changes in (("all", explored.changes), ("higher BLEU", improved)):
        click(browser, f"[value='{kind}']")
        browser.execute_script("dispatchEvent(new Event('beforeprint'))")
        printed = [int(name.removeprefix("Sentence ")) for name in texts(browser, "#printed h3")]
        assert printed == [number for number in ids(browser) if number in {each.sentence for each in changes}]
        assert len(printed) == len(changes)
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
        assert texts(browser, "#printed article") == []


def test_candidates_fit_into_a_narrow_window_and_on_paper(browse: Browse, report: Path, long: Path) -> None:
    """In a narrow window the texts fit without scrolling, on paper the bars fit as well."""
    ends = (
        "return Math.max(...[...document.querySelectorAll(arguments[0])]"
        ".map((each) => each.getBoundingClientRect().right))"
    )
    for path in (report, long):
        browser = browse("#s3", width=400, path=path)
        opened(browser, 3)
        assert browser.execute_script(ends, ".candidates td.words") <= 400
        browser = browse("#s3", width=700, path=path)
        opened(browser, 3)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert browser.execute_script(ends, ".candidates td") <= 700
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_numbers_rounded_to_zero_have_no_sign(browse: Browse, explored: Any, small_weights: Path) -> None:
    """The function `signed` is internal to the page's module, so only displayed values can be checked."""
    change = next(each for each in explored.changes if {part > 0 for _, part in each.reasons if part} == {True, False})
    browser = browse(f"#s{change.sentence}", path=small_weights)
    opened(browser, change.sentence)
    assert texts(browser, ".reason b") == ["0.00"] * len(change.reasons)
    shown = texts(browser, ".candidates td")
    assert not [number for number in shown if re.fullmatch("[+\N{MINUS SIGN}]0[.]0*", number)]


def test_the_open_sentence_is_printed(browse: Browse) -> None:
    browser = browse("#s30")
    opened(browser, 30)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    seen = "return [...arguments].map((each) => document.querySelector(each).checkVisibility())"
    assert browser.execute_script(seen, ".map", ".candidates", "dl") == [True] * 3
    assert browser.execute_script(seen, "#overview", "#sentences", "nav") == [False] * 3
    assert texts(browser, "#printed *") == []


def test_arrow_keys_move_over_the_cells_of_a_map(browse: Browse, explored: Any) -> None:
    browser = browse("#s32")
    opened(browser, 32)
    browser.execute_script("document.querySelector('.map .scroll').focus()")
    (attention, *_), (source, target) = (
        explored.attention[32, MOSES].values(),
        (explored.reranked.source[32], explored.reranked.before[32]),
    )
    for key, (j, i) in (("right", (0, 0)), ("left", (0, 0)), ("right", (0, 1)), ("down", (1, 1)), ("up", (0, 1))):
        press(browser, KEYS[key])
        words = (f"\u2068{line.split(' ')[place]}\u2069" for line, place in ((target, j), (source, i)))
        message = f"{' on '.join(words)}: {attention[j, i]:.4f}"
        assert texts(browser, ".map:first-child output")[0].rstrip("0") == message.rstrip("0")
    assert browser.current_url.endswith("#s32")


def test_a_list_without_phrases_has_maps_of_links(browse: Browse) -> None:
    browser = browse("#s0")
    opened(browser, 0)
    assert texts(browser, ".map h4")[-1] == "Moses: links of words"


def test_positions_are_those_of_moses_or_of_the_merged_list(browse: Browse, report: Path, long: Path) -> None:
    for path, about in ((report, "position in the list, as ranked by Moses"), (long, "position in the merged list")):
        browser = browse("#s0", path=path)
        opened(browser, 0)
        assert browser.find_element(BY, ".candidates th").get_attribute("title") == about


def test_the_map_of_a_long_sentence_is_drawn_on_request(browse: Browse, long: Path) -> None:
    browser = browse("#s0", path=long)
    opened(browser, 0)
    assert texts(browser, ".map button") == ["Show 61 \N{MULTIPLICATION SIGN} 60 cells"]
    assert texts(browser, ".matrix") == []
    click(browser, ".map button")
    assert len(browser.find_elements(BY, ".matrix td[title]")) == 61 * 60
    assert browser.switch_to.active_element.get_attribute("aria-label") == "a: attention"
