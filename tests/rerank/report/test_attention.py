from pathlib import Path

import numpy as np
import pytest

from rerank.report.attention import Attentions, open_attention, read_attention

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


def test_what_is_written_is_read_to_half_a_thousandth(path: str) -> None:
    attentions: Attentions = read_attention(path)
    wanted = {(0, "moses"): FIRST, (0, "reranked"): OTHER, (7, "moses"): OTHER, (7, "reranked"): OTHER}
    wanted |= {(8, "moses"): FIRST, (8, "reranked"): EMPTY}
    assert list(attentions) == list(wanted) and len(attentions) == 6
    for key, matrices in wanted.items():
        assert [each.model for each in attentions[key]] == ["left", "pair/right"]
        for each, matrix in zip(attentions[key], matrices, strict=True):
            assert each.weights.dtype == np.float32 and each.weights.shape == matrix.shape
            np.testing.assert_allclose(each.weights, matrix, rtol=0, atol=5.001e-4)
    for missing in ((1, "moses"), (0, "other")):
        assert missing not in attentions


def test_it_is_what_numpy_loads(path: str) -> None:
    with np.load(path) as archive:
        assert archive["models"].tolist() == ["left", "pair/right"]
        assert archive["0.moses"].tolist() == np.rint(FIRST * 1000).tolist()
        assert "7.reranked" not in archive


def test_a_writing_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_attention(str(tmp_path / "a.npz"), ["one"], ["moses"]) as write:
        write(0, "moses", [FIRST[0]])
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
