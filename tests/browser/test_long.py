"""The report page of a run over a long list with a tiny model.

The list is that of Multi30k if the variable `MOSES_RERANK_DATA` is set, else that of the sample.
"""

import gzip
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from features.feature import Resources
from moses_io.files.text import read_lines
from rerank.experiment.file import read_experiment
from rerank.experiment.run import run_experiment

pytestmark = pytest.mark.slow

Browse = Callable[..., Any]

BY = "css selector"
SIZES = {"train": 300, "dev": 40, "test": 200}
SCRIPT, ODD = "<script>document.title='alert'</script>", 7
EXPERIMENT = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
test = { source = "test.de", reference = "test.en", nbest = "test.nbest" }

[models]
[models.tiny]
preset = "rnnsearch"
embedding_size = 16
hidden_size = 16
attention_size = 16
epochs = 1
attend_bos_eos = false

[features]
Neural = "neural:tiny"

[tuning]
tuner = "kbmira"
iterations = 2
folds = 2
fallback = false
"""


class Long(NamedTuple):
    """The folder of a run, and the numbers of sentences and candidates of its test list."""

    folder: Path
    sentences: int
    candidates: int

    @property
    def page(self) -> Path:
        return self.folder / "work" / "report.html"


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a file, compressed or not."""
    gz = path.with_name(f"{path.name}.gz")
    with gzip.open(gz, "rt", encoding="utf-8") if gz.exists() else path.open(encoding="utf-8") as stream:
        yield from stream


def run(data: Path, folder: Path) -> Long:
    """Run an experiment on the first lines of each file. One candidate of the test list contains a script tag."""
    for name, size in SIZES.items():
        for side in ("de", "en"):
            lines = islice(lines_of(data / f"{name}.{side}"), size)
            (folder / f"{name}.{side}").write_text("".join(lines), encoding="utf-8")
    dev, lists = (
        [line for line in lines_of(data / f"{name}.nbest") if int(line.partition(" ")[0]) < SIZES[name]]
        for name in ("dev", "test")
    )
    place = next(place for place, line in enumerate(lists) if line.startswith(f"{ODD} "))
    fields = lists[place + 1].split(" ||| ")
    fields[1] = " ".join([SCRIPT, *fields[1].split(" ")[1:]])
    lists[place + 1] = " ||| ".join(fields)
    (folder / "dev.nbest").write_text("".join(dev), encoding="utf-8")
    (folder / "test.nbest").write_text("".join(lists), encoding="utf-8")
    (folder / "moses.ini").write_text((data / "moses.ini").read_text())
    (folder / "experiment.toml").write_text(EXPERIMENT)
    run_experiment(read_experiment(str(folder / "experiment.toml")), Resources("cpu"))
    return Long(folder, len(read_lines(str(folder / "test.de"))), len(lists))


@pytest.fixture(scope="module")
def long(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Long:
    more = os.environ.get("MOSES_RERANK_DATA")
    return run(Path(more, "multi30k-de-en") if more else sample, tmp_path_factory.mktemp("long"))


def wait(browser: Any, script: str, *arguments: object) -> Any:
    """Return the result of a script as soon as it is true or not empty."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 60, 0.02).until(lambda driver: driver.execute_script(f"return {script}", *arguments))


def texts(browser: Any, selector: str) -> list[str]:
    return list(wait(browser, "[...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector))


def test_a_sentence_is_found_opened_and_its_candidates_sorted(browse: Browse, long: Long) -> None:
    browser, source = browse(path=long.page), read_lines(str(long.folder / "test.de"))
    alike = [number for number, line in enumerate(source) if source[ODD].lower() in line.lower()]
    search = browser.find_element(BY, "#search")
    search.send_keys(source[ODD])
    assert texts(browser, "#count") == [f"{len(alike)} of {long.sentences} sentences"]
    browser.find_element(BY, f".list [data-id='{ODD}'] a").click()
    assert texts(browser, "#reading h2") == [f"Sentence {ODD}"]
    wait(browser, "document.querySelector('.candidates') !== null")
    rows = ".candidates tbody tr:not(.more)"
    candidates = [
        line.split(" ||| ")[1].strip(" ") for line in lines_of(long.folder / "test.nbest") if line.startswith(f"{ODD} ")
    ]
    for key, column, descending in (("position", 1, False), ("rank", 2, False), ("bleu", 3, True), ("score", 4, True)):
        wait(browser, f"document.querySelector('.candidates [data-key={key}]').click() ?? true")
        shown = [
            float(each.replace("\N{MINUS SIGN}", "-")) for each in texts(browser, f"{rows} td:nth-child({column})")
        ]
        assert shown == sorted(shown, reverse=descending) and len(shown) == len(candidates)
    browser.find_element(BY, ".candidates [data-key='position']").click()
    assert texts(browser, f"{rows} td.words > span") == candidates
    assert candidates[1].startswith(SCRIPT) and browser.title.startswith(f"Sentence {ODD}, ")


def test_the_page_is_small_and_opens_quickly(browse: Browse, long: Long) -> None:
    """The time is the lowest of several openings, because the machine may be busy."""
    megabytes = long.page.stat().st_size / 1e6
    ready = "performance.getEntriesByName('ready')[0].startTime"
    seconds = min(wait(browse(path=long.page), ready) / 1000 for _ in range(5))
    print(f"{long.sentences} sentences, {long.candidates} candidates: {megabytes:.1f} MB, ready in {seconds:.2f} s")
    assert megabytes <= 5 and seconds < 2
