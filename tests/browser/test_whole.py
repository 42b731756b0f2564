"""The pages of runs over whole lists: of the sample, and of Multi30k where its data are, with tiny models."""

import gzip
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from features.feature import Resources
from features.models.alignment.aligner import Aligner
from moses_io.text import read_lines, tokens
from rerank.experiment.chain import run_experiment
from rerank.experiment.file import read_experiment

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:the new features")]

Browse = Callable[..., Any]

BY = "css selector"
PAIRS, SCRIPT, ODD = 500, "<script>document.title='alert'</script>", 7
EXPERIMENT = """\
output = "work"
start = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
test = { source = "test.de", reference = "test.en", nbest = "test.nbest" }

[models]
tiny = { preset = "rnnsearch", embedding = 16, hidden = 16, attention = 16, epochs = 1, sentinels = false }

[features]
Neural = "neural:tiny"

[tuning]
tuner = "kbmira"
iterations = 2
folds = 2
fallback = false
"""


class Whole(NamedTuple):
    """The folder of a run; how many sentences and candidates its test list has."""

    folder: Path
    sentences: int
    candidates: int

    @property
    def page(self) -> Path:
        return self.folder / "work" / "report.html"


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file, packed or not."""
    packed = path.with_name(f"{path.name}.gz")
    with gzip.open(packed, "rt", encoding="utf-8") if packed.exists() else path.open(encoding="utf-8") as stream:
        yield from stream


def run(data: Path, folder: Path, dev: int) -> Whole:
    """Run on as many sentences of dev and the whole test list, of which one candidate has a tag of a script."""
    for name, most in (("train", PAIRS), ("dev", dev), ("test", None)):
        for side in ("de", "en"):
            lines = list(lines_of(data / f"{name}.{side}"))[:most]
            (folder / f"{name}.{side}").write_text("".join(lines), encoding="utf-8")
    kept = [line for line in lines_of(data / "dev.nbest") if int(line.partition(" ")[0]) < dev]
    lists = list(lines_of(data / "test.nbest"))
    place = next(place for place, line in enumerate(lists) if line.startswith(f"{ODD} "))
    fields = lists[place + 1].split(" ||| ")
    fields[1] = " ".join([SCRIPT, *fields[1].split(" ")[1:]])
    lists[place + 1] = " ||| ".join(fields)
    (folder / "dev.nbest").write_text("".join(kept), encoding="utf-8")
    (folder / "test.nbest").write_text("".join(lists), encoding="utf-8")
    (folder / "moses.ini").write_text((data / "moses.ini").read_text())
    (folder / "experiment.toml").write_text(EXPERIMENT)
    run_experiment(read_experiment(str(folder / "experiment.toml")), Resources("cpu"))
    return Whole(folder, len(read_lines(str(folder / "test.de"))), len(lists))


@pytest.fixture(scope="session")
def whole_sample(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return run(sample, tmp_path_factory.mktemp("whole-sample"), 400)


@pytest.fixture(scope="session")
def multi30k(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return run(data / "multi30k-de-en", tmp_path_factory.mktemp("multi30k"), 100)


@pytest.fixture(params=["whole_sample", "multi30k"])
def whole(request: pytest.FixtureRequest) -> Whole:
    made: Whole = request.getfixturevalue(request.param)
    return made


def wait(browser: Any, script: str, *arguments: object) -> Any:
    """Return what a script gives as soon as it gives something."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20, 0.02).until(lambda driver: driver.execute_script(f"return {script}", *arguments))


def texts(browser: Any, selector: str) -> list[str]:
    return list(wait(browser, "[...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector))


def test_a_sentence_is_found_opened_and_its_candidates_sorted(browse: Browse, whole: Whole) -> None:
    browser, source = browse(path=whole.page), read_lines(str(whole.folder / "test.de"))
    alike = [number for number, line in enumerate(source) if source[ODD].lower() in line.lower()]
    search = browser.find_element(BY, "#search")
    search.send_keys(source[ODD])
    assert texts(browser, "#count") == [f"{len(alike)} of {whole.sentences} sentences"]
    browser.find_element(BY, f".list [data-id='{ODD}'] a").click()
    assert texts(browser, "#reading h2") == [f"Sentence {ODD}"]
    wait(browser, "document.querySelector('.candidates') !== null")
    rows = ".candidates tbody tr:not(.more)"
    candidates = [
        line.split(" ||| ")[1].strip(" ")
        for line in lines_of(whole.folder / "test.nbest")
        if line.startswith(f"{ODD} ")
    ]
    for key, column, descending in (("place", 1, False), ("rank", 2, False), ("bleu", 3, True), ("score", 4, True)):
        wait(browser, f"document.querySelector('.candidates [data-key={key}]').click() ?? true")
        shown = [
            float(each.replace("\N{MINUS SIGN}", "-")) for each in texts(browser, f"{rows} td:nth-child({column})")
        ]
        assert shown == sorted(shown, reverse=descending) and len(shown) == len(candidates)
    browser.find_element(BY, ".candidates [data-key='place']").click()
    assert texts(browser, f"{rows} td.words > span") == candidates
    assert candidates[1].startswith(SCRIPT) and browser.title.startswith(f"Sentence {ODD}, ")


def test_a_map_has_the_numbers_of_the_model(browse: Browse, whole: Whole) -> None:
    source, chosen = (
        tuple(tokens(read_lines(str(whole.folder / name))[ODD])) for name in ("test.de", "work/test.reranked")
    )
    (aligned,) = Aligner([str(whole.folder / "work" / "models" / "tiny")], "cpu").align([(source, chosen)])
    browser = browse(f"#s{ODD}", path=whole.page)
    wait(browser, "document.querySelector('.candidates') !== null")
    titles = wait(browser, "[...document.querySelectorAll('.map:first-child tbody td')].map((cell) => cell.title)")
    assert len(titles) == len(chosen) * len(source)
    shown = np.array([float(title.rpartition(": ")[2]) for title in titles])  # (J·I,)
    np.testing.assert_allclose(shown, aligned.attention.ravel(), rtol=0, atol=1e-3)


def test_the_page_is_small_and_soon_there(browse: Browse, whole: Whole) -> None:
    """Of three openings, the middle one: the machine may have other things to do."""
    megabytes = whole.page.stat().st_size / 1e6
    ready = "performance.getEntriesByName('ready')[0].startTime"
    seconds = statistics.median(wait(browse(path=whole.page), ready) / 1000 for _ in range(3))
    print(f"{whole.sentences} sentences, {whole.candidates} candidates: {megabytes:.1f} MB, ready in {seconds:.2f} s")
    assert megabytes <= 20 and seconds < 2
