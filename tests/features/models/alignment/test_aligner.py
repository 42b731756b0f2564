import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from features.models.alignment.aligner import Aligned, Aligner, most_attended
from features.models.folder import load_model, save_weights
from features.models.scoring.alone import score_pairs
from moses_io.alignment import turned
from moses_io.errors import InputError
from moses_io.symmetrize import SYMMETRIZATIONS

PAIRS = [
    (("die", "Zeitung", "."), ("the", "newspaper", ".")),
    (("im", "Wald", "gibt", "es", "eine", "Lampe", "."), ("there", "is", "a", "lamp", "in", "the", "wood", ".")),
    ((), ("nothing",)),
    (("die", "Nachbarinnen", "haben", "die", "Zeitung", "gekauft", "."), ("the", "neighbours", "unheard-of")),
    (("nichts",), ()),
    ((), ()),
]


def aligner(*folders: Path, symmetrize: str | None = None) -> Aligner:
    return Aligner([str(folder) for folder in folders], "cpu", symmetrize)


def attention(folder: Path, pair: tuple[tuple[str, ...], tuple[str, ...]]) -> np.ndarray:
    """Rows of a model with wiring `attend-first` on words, without that of `</s>`."""
    ((_, scores),) = score_pairs([load_model(folder, torch.device("cpu"))], [pair])
    return scores.attention[0].numpy()[:-1]


def same(one: list[Aligned], other: list[Aligned]) -> None:
    assert [each.links for each in one] == [each.links for each in other]
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.attention, b.attention, atol=1e-6)


def test_most_attended_words_by_hand() -> None:
    rows = [
        [0.1, 0.2, 0.6, 0.1],  # the second word
        [0.0, 0.4, 0.4, 0.2],  # the first one of equals
        [0.5, 0.2, 0.3, 0.0],  # <s>
        [0.0, 0.2, 0.3, 0.5],  # </s>
        [0.4, 0.1, 0.4, 0.1],  # a word as much as a sentinel
        [0.0, 0.0, 0.0, 0.0],  # nothing
    ]
    assert most_attended(np.array(rows, dtype=np.float32)) == {(0, 1), (1, 0), (4, 1)}


def test_a_forward_model_links_target_words(pointed: dict[str, Path]) -> None:
    found = aligner(pointed["forward"]).align(PAIRS)
    assert sum(len(each.links) for each in found) > 3
    for pair, aligned in zip(PAIRS, found, strict=True):
        source, target = pair
        assert aligned.attention.shape == (len(target), len(source)) and aligned.attention.dtype == np.float32
        if not (source and target):
            assert aligned.links == set()
            continue
        rows = attention(pointed["forward"], pair)
        np.testing.assert_allclose(aligned.attention, rows[:, 1:-1], atol=1e-6)
        best = [(int(row.argmax()) - 1, j) for j, row in enumerate(rows)]
        assert aligned.links == {(i, j) for i, j in best if 0 <= i < len(source)}


def test_a_backward_model_links_source_words(pointed: dict[str, Path]) -> None:
    aligned = aligner(pointed["backward"]).align(PAIRS)
    assert sum(len(each.links) for each in aligned) > 3
    for pair, each in zip(PAIRS[:2], aligned, strict=False):
        rows = attention(pointed["backward"], pair)  # (I, J+2)
        np.testing.assert_allclose(each.attention, rows[:, 1:-1].T, atol=1e-6)
        best = [(i, int(row.argmax()) - 1) for i, row in enumerate(rows)]
        assert each.links == {(i, j) for i, j in best if 0 <= j < len(pair[1])}


@pytest.mark.parametrize("name", [None, *SYMMETRIZATIONS])
def test_both_directions(pointed: dict[str, Path], name: str | None) -> None:
    forward, backward = (aligner(folder).align(PAIRS) for folder in pointed.values())
    both = aligner(pointed["backward"], pointed["forward"], symmetrize=name)
    join = SYMMETRIZATIONS[name or "grow-diag-final-and"]
    wanted = [
        Aligned(join(one.links, other.links), (one.attention + other.attention) / 2)
        for one, other in zip(forward, backward, strict=True)
    ]
    same(both.align(PAIRS), wanted)
    assert both.signature.endswith(f"|symmetrize:{name or 'grow-diag-final-and'}")


def test_an_ensemble_is_the_mean_of_its_models(pointed: dict[str, Path], kept: Path) -> None:
    forward = pointed["forward"]
    same(aligner(forward, forward).align(PAIRS), aligner(forward).align(PAIRS))
    found = aligner(forward, kept).align(PAIRS)[1]
    rows = (attention(forward, PAIRS[1]) + attention(kept, PAIRS[1])) / 2
    np.testing.assert_allclose(found.attention, rows[:, 1:-1], atol=1e-6)
    assert found.links == turned(most_attended(rows))


def test_neighbours_make_no_difference(pointed: dict[str, Path]) -> None:
    both = aligner(*pointed.values())
    same(both.align([*PAIRS[::-1], *PAIRS])[len(PAIRS) :], [both.align([pair])[0] for pair in PAIRS])


def test_no_pairs_at_all(pointed: dict[str, Path]) -> None:
    assert aligner(pointed["forward"]).align([]) == []
    assert len(aligner(pointed["forward"]).align(PAIRS[4:])) == 2


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A forward model of other words."""
    expected = Path(__file__).parents[3] / "expected" / "models"
    return Path(shutil.copytree(expected / "forward", tmp_path / "kept"))


def test_models_that_cannot_align(pointed: dict[str, Path], kept: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--symmetrize needs a forward and a backward model; found forward ones alone"):
        aligner(kept, pointed["forward"], symmetrize="union")
    with pytest.raises(InputError, match=r"nowhere: not a model folder, it has no config\.json"):
        aligner(kept, tmp_path / "nowhere")
    model = load_model(kept, torch.device("cpu"))
    with torch.no_grad():
        model.network.source_embedding.weight.fill_(torch.nan)
    save_weights(kept, model.network)
    with pytest.raises(InputError, match="kept: the attention of this model is not finite"):
        aligner(kept).align(PAIRS)
    config = json.loads((kept / "config.json").read_text())
    config["architecture"] |= {"wiring": "none", "terms": [], "objectives": []}
    (kept / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="kept: a model with wiring 'none' has no attention to align with"):
        aligner(kept)
