"""The report page of a run, with its charts and the attention of a model."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from features.feature import Resources
from features.models.alignment import Aligner
from moses_io.files.text import read_lines, tokens
from rerank.experiment.file import read_experiment
from rerank.experiment.run import run_experiment

Browse, Luminance = Callable[..., Any], Callable[[str], float]

BY = "css selector"
SENTENCES, CANDIDATES = 30, 12
EXPERIMENT = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
test = { source = "test.de", reference = "test.en", nbest = "test.nbest" }

[features]
Neural = "neural:MODEL"

[tuning]
tuner = "kbmira"
iterations = 2
folds = 2
fallback = false
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, sample: Path, pointed: dict[str, Path]) -> Path:
    """The folder of a run over a few sentences of the sample."""
    folder = tmp_path_factory.mktemp("ran")
    for name in ("train", "dev", "test"):
        for side in ("de", "en"):
            lines = (sample / f"{name}.{side}").read_text(encoding="utf-8").split("\n")
            (folder / f"{name}.{side}").write_text("\n".join(lines[:SENTENCES]) + "\n", encoding="utf-8")
    for name in ("dev", "test"):
        lists: dict[int, list[str]] = {number: [] for number in range(SENTENCES)}
        with gzip.open(sample / f"{name}.nbest.gz", "rt", encoding="utf-8") as stream:
            for line in stream:
                lists.get(int(line.split(" ")[0]), []).append(line)
        text = "".join(line for lines in lists.values() for line in lines[:CANDIDATES])
        (folder / f"{name}.nbest").write_text(text, encoding="utf-8")
    shutil.copy(sample / "moses.ini", folder / "moses.ini")
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("MODEL", str(pointed["forward"])))
    run_experiment(read_experiment(str(folder / "experiment.toml")), Resources("cpu"))
    return folder / "work"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_into_a_narrow_window(browse: Browse, ran: Path, luminance: Luminance, scheme: str) -> None:
    """Text and links in charts have a contrast of at least 4.5, as WCAG requires."""
    browser = browse(width=400, scheme=scheme, path=ran / "report.html")
    assert browser.title == "moses-rerank: test"
    assert len(browser.find_elements(BY, "#charts svg")) > 3
    assert browser.execute_script("return document.scrollingElement.scrollWidth <= innerWidth")
    assert browser.find_element(BY, "#charts svg a text").value_of_css_property("unicode-bidi") == "plaintext"
    page = luminance(browser.find_element(BY, "body").value_of_css_property("background-color"))
    for text in browser.find_elements(BY, "#charts svg text"):
        low, high = sorted((luminance(text.value_of_css_property("fill")), page))
        assert (high + 0.05) / (low + 0.05) >= 4.5, text.text


def test_maps_show_the_attention_of_the_model(browse: Browse, ran: Path, pointed: dict[str, Path]) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    number, folder = 3, str(pointed["forward"])
    source, chosen = (
        tuple(tokens(read_lines(str(path))[number])) for path in (ran.parent / "test.de", ran / "test.reranked")
    )
    (aligned,) = Aligner([folder], "cpu").align([(source, chosen)])
    browser = browse(f"#s{number}", path=ran / "report.html")
    cells = "return [...document.querySelectorAll('.map:first-child tbody td')].map((cell) => cell.title)"
    titles: list[str] = WebDriverWait(browser, 60, 0.02).until(lambda driver: driver.execute_script(cells))
    assert len(titles) == len(chosen) * len(source)
    shown = np.array([float(title.rpartition(": ")[2]) for title in titles])  # (J·I,)
    np.testing.assert_allclose(shown, aligned.attention.ravel(), rtol=0, atol=1e-3)
