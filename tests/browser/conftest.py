"""A report page with sentences of the sample, and headless Chromium to open it."""

import gzip
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moses_io.files.text import read_lines, tokens
from moses_io.filters import Filters
from moses_io.nbest import read_nbest
from moses_io.weights import WeightFile, read_weights
from rerank.confidence.fitting import MeasuredEstimates
from rerank.linear.missing import Replacements, complete
from rerank.linear.ranking import Estimate, LinearModel, Ranking, rankings
from rerank.metrics.evaluation import evaluate
from rerank.report.changes import MOSES, RERANKED, Change, Reranked, find_change, sorted_changes
from rerank.report.listed import ListLookup, merged_list_names, read_listed
from rerank.report.page import Chunks, index, overview, page
from rerank.report.tables import Section

SENTENCES = 30
"""Number of sentences of the sample. The sentences of `ODD` and a sentence without candidates follow."""

ODD = {
    "das <b>Haus</b>": ["the <script>alert(1)</script> house", "the <b>house</b>"],
    "שלום עולם": ["مرحبا يا عالم", "שלום לכולם"],
    "東京 に 行く": ["I go to 東京", "going \x1b[2J東京"],
}

FIGURE = (
    '<figure><svg viewBox="0 0 900 300" role="img"><title>chart</title></svg><figcaption>a chart</figcaption></figure>'
)


@dataclass(frozen=True)
class Explored:
    """A data set with its scored list, and artificial estimates and attention."""

    nbest: Path
    reranked: Reranked
    estimates: dict[int, Estimate]
    attention: dict[tuple[int, str], dict[str, Any]]

    @property
    def systems(self) -> dict[str, Sequence[str]]:
        return {MOSES: self.reranked.before, RERANKED: self.reranked.after}

    @cached_property
    def changes(self) -> list[Change]:
        found = [
            find_change(each, self.reranked, "BLEU", self.estimates.get(each.sentence))
            for each in read_nbest(str(self.nbest))
        ]
        return sorted_changes(change for change in found if change)


@pytest.fixture(scope="session")
def explored(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Explored:
    """The best candidates by Moses' weights and by other weights, with artificial estimates and attention."""
    nbest = tmp_path_factory.mktemp("explored") / "list"
    with gzip.open(sample / "test.nbest.gz", "rb") as stream:
        lines = list(takewhile(lambda line: int(line.split(b" ")[0]) < SENTENCES, stream))
    features = lines[0].split(b"|||")[2]
    lines += [
        f"{number} ||| {text} |||".encode() + features + f"||| {-place} ||| 0=0 1=1 ||| 0-0 1-1\n".encode()
        for number, texts in enumerate(ODD.values(), start=SENTENCES)
        for place, text in enumerate(texts)
    ]
    nbest.write_bytes(b"".join(lines))
    source, reference = ([*read_lines(str(sample / f"test.{side}"))[:SENTENCES]] for side in ("de", "en"))
    source += [*ODD, "no candidates"]
    weights = read_weights(str(sample / "moses.ini"))
    weights["TranslationModel0"] = (0.5, 0.1, 0.1, 0.0)
    whole = complete(read_nbest(str(nbest)), Replacements(len(source), blank=True))
    ranked = list(rankings(whole, LinearModel(WeightFile(weights), "w")))
    rows = [each for each in ranked if isinstance(each, Ranking)]
    before = [each.candidates.hypotheses[each.candidates.highest_total].text for each in rows] + [""]
    after = [each.best.text for each in rows] + [""]
    after[SENTENCES], after[SENTENCES + 1] = ODD["das <b>Haus</b>"][1], ODD["שלום עולם"][1]
    references = [[*reference, "the house", "x", "y", "z"]]
    differ = [old != new for old, new in zip(before, after, strict=True)]
    estimates = {number: Estimate(50 + number, 0.5 if differ[number] else None) for number in range(20)}
    attention = {
        (number, system): {model: made_up(number, source[number], lines[number]) for model in "ab"}
        for system, lines in ((MOSES, before), (RERANKED, after))
        for number in range(0, len(source), 2)
    }
    reranked = Reranked(
        source=source, references=references, before=before, after=after, weights=weights, filters=Filters("")
    )
    return Explored(nbest, reranked, estimates, attention)


def made_up(seed: int, source: str, target: str) -> Any:
    """Return random attention (J, I) with rows that sum to 1."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(len(tokens(source))), len(tokens(target))).astype(np.float32)


def write_page(explored: Explored, path: Path) -> Path:
    reranked, names = explored.reranked, merged_list_names(next(read_nbest(str(explored.nbest))))
    chunks, find_in_list = (
        Chunks(reranked, names, explored.attention, BytesIO()),
        ListLookup(reranked.references, explored.systems),
    )
    reasons = {change.sentence: change.reasons for change in explored.changes}
    model = LinearModel(WeightFile(reranked.weights), "w")
    for listed in read_listed(str(explored.nbest), reranked.references, find_in_list.size, reranked.filters):
        candidates = listed.candidates
        find_in_list.add(listed)
        chunks.add(listed, Ranking(candidates, model.scores(candidates)), reasons.get(candidates.sentence, ()))
    chunks.finish()
    evaluation = evaluate(explored.systems, reranked.references, facts=find_in_list.facts)
    sections = [Section("title", [["header " * 10] * 12] * 2, ["text " * 40])]
    name = "the <set>"
    above = overview(name, "BLEU rises.", evaluation, [], sections, [FIGURE] * 3)
    columns = index(reranked, MeasuredEstimates("BLEU", explored.estimates), explored.changes, chunks.chunk_numbers)
    path.write_text("\n".join(page(name, above, chunks.elements(), columns)), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def report(explored: Explored, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(explored, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="session")
def unjudged(explored: Explored, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report page without references."""
    unknown = replace(explored, reranked=replace(explored.reranked, references=[]))
    return write_page(unknown, tmp_path_factory.mktemp("unjudged") / "report.html")


@pytest.fixture(scope="session")
def long(explored: Explored, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report page of a merged list. Its first sentence has 60 words and a translation of 61 words."""
    folder, reranked = tmp_path_factory.mktemp("long"), explored.reranked
    lists = re.sub(rb" \|\|\|(?= Lex)", b" ||| FromA= 1 FromB= 0", explored.nbest.read_bytes())
    (folder / "list").write_bytes(lists)
    source, target = " ".join(["wort"] * 60), " ".join(["word"] * 61)
    changed = replace(
        reranked,
        weights={**reranked.weights, "FromA": (0.0,), "FromB": (0.0,)},
        source=[source, *reranked.source[1:]],
        before=[target, *reranked.before[1:]],
        after=[target, *reranked.after[1:]],
    )
    attention = {(0, MOSES): {"a": made_up(0, source, target)}}
    return write_page(Explored(folder / "list", changed, explored.estimates, attention), folder / "report.html")


@pytest.fixture(scope="session")
def small_weights(explored: Explored, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report page of weights so small that all contributions are rounded to zero."""
    weights = {name: tuple(value / 10_000 for value in row) for name, row in explored.reranked.weights.items()}
    small = replace(explored, reranked=replace(explored.reranked, weights=weights))
    return write_page(small, tmp_path_factory.mktemp("small") / "report.html")


@pytest.fixture(scope="session")
def luminance() -> Callable[[str], float]:
    """Return a function that computes the relative luminance of an opaque colour, as WCAG defines it."""

    def of(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    return of


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    if missing := [name for name, place in programs.items() if place is None]:
        pytest.skip(f"{' and '.join(missing)} cannot be found; apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = programs["chromium"]
    quiet = ("disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update")
    root = ("no-sandbox",) if os.geteuid() == 0 else ()
    for argument in ("headless=new", "disable-sync", *quiet, *root):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(programs["chromedriver"]))
    yield driver
    driver.quit()


@pytest.fixture
def browse(chromium: Any, report: Path) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page, given a window width and a colour scheme, and waits until it is ready.

    A message on the browser console is an error.
    """
    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(
        fragment: str = "", width: int = 1200, scheme: str = "light", path: Path = report, ready: bool = True
    ) -> Any:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
        chromium.get("about:blank")
        chromium.get(f"file://{path}{fragment}")
        marked = "return performance.getEntriesByName('ready').length > 0"
        WebDriverWait(chromium, 60, 0.02).until(lambda driver: not ready or driver.execute_script(marked))
        return chromium

    chromium.get_log("browser")
    yield open_page
    assert chromium.get_log("browser") == []
