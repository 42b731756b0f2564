from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from features.models.alignment import Aligner, dimension_rows
from features.models.folder import load_model, save_weights
from moses_io.files.errors import InputError
from rerank.plots.attention import dimensions, matrices, plot_grids, read_pair

Write = Callable[[str, "str | bytes"], Path]

PAIR = (("die", "Zeitung", "."), ("the", "newspaper", "today", "."))


@pytest.fixture
def texts(write: Write) -> tuple[str, str]:
    return str(write("source", "x\ndie Zeitung .\n\n")), str(write("target", "x\nthe newspaper today .\ny\n"))


def test_read_a_sentence_pair_by_its_index(texts: tuple[str, str], write: Write) -> None:
    links = str(write("links", "0-0\n0-0 2-3\n\n"))
    assert read_pair(*texts, 1, None) == (PAIR, frozenset())
    assert read_pair(*texts, 1, links) == (PAIR, {(0, 0), (2, 3)})
    with pytest.raises(InputError, match="source has 3 lines, there is no sentence 3"):
        read_pair(*texts, 3, None)
    with pytest.raises(InputError, match="source:3: expected words to attend to, found none"):
        read_pair(*texts, 2, None)
    with pytest.raises(InputError, match="links:3: the link 0-0 is outside a sentence pair of 0 and 1 words"):
        read_pair(*texts, 1, str(write("links", "0-0\n\n0-0\n")))


def test_markup_in_the_source_of_a_pair_is_an_error(write: Write) -> None:
    with pytest.raises(InputError, match="source:2: '<wall/>' is markup for Moses' -xml-input"):
        read_pair(str(write("source", "x\n<wall/> y\n")), str(write("target", "x\ny\n")), 1, None)


def test_one_attention_matrix_per_model(
    pointed: dict[str, Path], tmp_path: Path, drawn: Callable[[Path], list[str]]
) -> None:
    folders = [str(folder) for folder in pointed.values()]
    grids = matrices(folders, "cpu", PAIR, frozenset({(0, 0), (2, 3)}))
    assert [grid.model for grid in grids] == ["forward", "backward"]
    for folder, grid in zip(folders, grids, strict=True):
        np.testing.assert_array_equal(grid.weights, Aligner([folder], "cpu").align([PAIR])[0].attention)
        assert grid.weights.shape == (len(grid.rows), len(grid.columns)) == (4, 3)
    plot_grids(grids, str(tmp_path / "a.svg"))
    words = drawn(tmp_path / "a.svg")
    assert sorted(words) == sorted([*PAIR[0], *PAIR[0], *PAIR[1], "forward", "backward"])
    assert (tmp_path / "a.svg").read_text().count("stroke: #d55e00") == 4


def test_attention_weights_by_dimension(fine: Path, tmp_path: Path, drawn: Callable[[Path], list[str]]) -> None:
    (grid,) = dimensions([str(fine)], "cpu", PAIR, word=2)
    wanted = dimension_rows(load_model(fine, torch.device("cpu")), PAIR)[1]
    np.testing.assert_array_equal(grid.weights, wanted)
    assert (grid.model, grid.rows, grid.weights.shape) == ("fine: newspaper", PAIR[0], (3, 6))
    plot_grids([grid], str(tmp_path / "a.svg"))
    assert {*PAIR[0], "fine: newspaper", "0", "5"} <= set(drawn(tmp_path / "a.svg"))


def test_wrong_models_and_words_for_dimensions_are_errors(fine: Path, models: dict[str, Path]) -> None:
    with pytest.raises(
        InputError, match=r"forward: attention has one weight per word. Dimensions need granularity=fine"
    ):
        dimensions([str(models["forward"])], "cpu", PAIR, 1)
    with pytest.raises(InputError, match=r"--word 5: the sentence that .*fine predicts has 4 words"):
        dimensions([str(fine)], "cpu", PAIR, 5)
    model = load_model(fine, torch.device("cpu"))
    with torch.no_grad():
        model.network.source_embedding.weight.fill_(torch.nan)
    save_weights(fine, model.network)
    with pytest.raises(InputError, match="fine: the attention of this model is not finite"):
        dimensions([str(fine)], "cpu", PAIR, 1)
