import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from features.models.alignment import Aligner
from moses_io.files.errors import InputError
from rerank.systems import attention
from rerank.systems.attention import Attentions, batched, open_attention, read_attention

Write = Callable[[str, "str | bytes"], Path]

RNG = np.random.default_rng(1)
FIRST, OTHER = (RNG.dirichlet(np.ones(4), size=(2, 3)).astype(np.float32) for _ in range(2))  # (M, J, I) each
EMPTY = np.zeros((2, 0, 4), dtype=np.float32)


@pytest.fixture
def path(tmp_path: Path) -> str:
    with open_attention(str(tmp_path / "attention.npz"), ["left", "pair/right"], ["moses", "reranked"]) as write:
        write(0, "moses", list(FIRST))
        write(0, "reranked", list(OTHER))
        write(7, "moses", list(OTHER))
        write(8, "moses", list(FIRST))
        write(8, "reranked", list(EMPTY))
    return str(tmp_path / "attention.npz")


def test_attention_is_stored_with_three_decimals(path: str) -> None:
    attentions: Attentions = read_attention(path)
    wanted = {(0, "moses"): FIRST, (0, "reranked"): OTHER, (7, "moses"): OTHER, (7, "reranked"): OTHER}
    wanted |= {(8, "moses"): FIRST, (8, "reranked"): EMPTY}
    assert list(attentions) == list(wanted) and len(attentions) == 6
    for key, matrices in wanted.items():
        assert list(attentions[key]) == ["left", "pair/right"]
        for weights, matrix in zip(attentions[key].values(), matrices, strict=True):
            assert weights.dtype == np.float32 and weights.shape == matrix.shape
            np.testing.assert_allclose(weights, matrix, rtol=0, atol=5.001e-4)
    for missing in ((1, "moses"), (0, "other")):
        assert missing not in attentions


def test_numpy_can_load_the_file(path: str) -> None:
    with np.load(path) as archive:
        assert archive["models"].tolist() == ["left", "pair/right"]
        assert archive["0.moses"].tolist() == np.rint(FIRST * 1000).tolist()
        assert "7.reranked" not in archive


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_attention(str(tmp_path / "a.npz"), ["one"], ["moses"]) as write:
        write(0, "moses", [FIRST[0]])
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


SOURCE = "die Zeitung .\n\nim Wald gibt es eine Lampe .\nnichts\n"
MOSES = "the newspaper .\nnothing\nthere is a lamp in the wood .\n\n"
OURS = "newspaper the .\nnothing\nthere is a lamp in the wood .\nnothing\n"


def test_attention_of_each_model_for_each_system(
    pointed: dict[str, Path], write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values equal those of an aligner with one model. Pairs are processed two at a time, and equal outputs once."""
    monkeypatch.setattr(attention, "MAX_PAIRS", 2)
    source, systems = str(write("source", SOURCE.replace("Wald ", "Wald\t"))), {"moses": MOSES, "reranked": OURS}
    models = {name: str(folder) for name, folder in pointed.items()}
    written = [tmp_path / "one.npz", tmp_path / "two.npz"]
    for path in written:
        attention.attend(
            models, source, {name: str(write(name, text)) for name, text in systems.items()}, "cpu", str(path)
        )
    assert written[0].read_bytes() == written[1].read_bytes()
    with zipfile.ZipFile(written[0]) as members:
        assert {member.date_time for member in members.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    attentions = read_attention(str(written[0]))
    assert list(attentions) == [(number, system) for number in range(4) for system in systems]
    with np.load(written[0]) as archive:
        arrays = ["0.moses", "0.reranked", "1.moses", "2.moses", "3.moses", "3.reranked"]
        assert archive.files == ["models", "systems", *arrays]
    for name, folder in models.items():
        for system, text in systems.items():
            sentences = [tuple(line.split()) for line in SOURCE.split("\n")[:-1]]
            choices = [tuple(line.split()) for line in text.split("\n")[:-1]]
            for number, aligned in enumerate(
                Aligner([folder], "cpu").align(list(zip(sentences, choices, strict=True)))
            ):
                weights = attentions[number, system][name]
                assert weights.shape == (len(choices[number]), len(sentences[number]))
                np.testing.assert_allclose(weights, aligned.attention, rtol=0, atol=5.1e-4)


def test_batches_are_limited_by_pairs_and_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "MAX_PAIRS", 3)
    monkeypatch.setattr(attention, "MAX_VALUES", 24)
    small, large = (("a",), ("b",)), (("a",) * 6, ("b",) * 3)  # 3 and 24 cells
    assert list(batched([small] * 4 + [large] + [small])) == [[small] * 3, [small], [large], [small]]
    assert list(batched([])) == []


class Hostile:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._path,)


@pytest.mark.parametrize("name", ["models", "systems", "0.moses"])
def test_pickles_in_an_attention_file_are_errors(tmp_path: Path, name: str) -> None:
    """They are not loaded."""
    touched, path = tmp_path / "touched", tmp_path / "a.npz"
    arrays = {"models": np.array(["one"]), "systems": np.array(["moses"]), "0.moses": np.zeros((1, 2, 2), np.uint16)}
    np.savez(path, **arrays)
    assert len(read_attention(str(path))[0, "moses"]) == 1
    np.savez(path, **arrays | {name: np.array([Hostile(touched)], dtype=object)})
    with pytest.raises(InputError, match=r"a\.npz: damaged, or no file of attention \('Object arrays cannot be loaded"):
        read_attention(str(path))[0, "moses"]
    assert not touched.exists()
    with np.load(path, allow_pickle=True) as archive:
        archive[name]
    assert touched.exists()
