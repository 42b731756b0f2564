import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from features.models.alignment import Aligned, Aligner, boundary_rows, dimension_rows, most_attended, word_rows
from features.models.config import ModelConfig
from features.models.folder import Model, load_model, save_weights
from features.models.network.attention import Attended, Attention, History, Query
from features.models.network.model import EncoderDecoder
from features.models.network.source import Source
from features.models.scoring.pairs import score_pairs
from features.models.settings import Architecture, Training, override
from features.models.vocabulary import build_vocabulary
from moses_io.alignment import swapped
from moses_io.files.errors import InputError
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
    """Return the attention of a word model with decoder `attend-first`, without the row of `</s>`."""
    ((_, scores),) = score_pairs([load_model(folder, torch.device("cpu"))], [pair])
    return scores.attention[0].numpy()[:-1]


def same(one: list[Aligned], other: list[Aligned]) -> None:
    assert [each.links for each in one] == [each.links for each in other]
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.attention, b.attention, atol=1e-6)


def test_most_attended_words_by_hand() -> None:
    rows = [
        [0.1, 0.2, 0.6, 0.1],  # the second word has the maximum
        [0.0, 0.4, 0.4, 0.2],  # the first of two equal words
        [0.5, 0.2, 0.3, 0.0],  # <s>
        [0.0, 0.2, 0.3, 0.5],  # </s>
        [0.4, 0.1, 0.4, 0.1],  # a word has the same weight as <s>
        [0.0, 0.0, 0.0, 0.0],  # no attention
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
def test_links_of_both_directions_are_symmetrized(pointed: dict[str, Path], name: str | None) -> None:
    forward, backward = (aligner(folder).align(PAIRS) for folder in pointed.values())
    both = aligner(pointed["backward"], pointed["forward"], symmetrize=name)
    join = SYMMETRIZATIONS[name or "grow-diag-final-and"]
    wanted = [
        Aligned(join(one.links, other.links), (one.attention + other.attention) / 2)
        for one, other in zip(forward, backward, strict=True)
    ]
    same(both.align(PAIRS), wanted)
    assert both.signature.endswith(f"|symmetrize:{name or 'grow-diag-final-and'}")


def test_an_ensemble_averages_the_attention_of_its_models(pointed: dict[str, Path], other_vocabulary: Path) -> None:
    forward = pointed["forward"]
    same(aligner(forward, forward).align(PAIRS), aligner(forward).align(PAIRS))
    found = aligner(forward, other_vocabulary).align(PAIRS)[1]
    rows = (attention(forward, PAIRS[1]) + attention(other_vocabulary, PAIRS[1])) / 2
    np.testing.assert_allclose(found.attention, rows[:, 1:-1], atol=1e-6)
    assert found.links == swapped(most_attended(rows))


def test_alignments_do_not_depend_on_batches(pointed: dict[str, Path]) -> None:
    both = aligner(*pointed.values())
    same(both.align([*PAIRS[::-1], *PAIRS])[len(PAIRS) :], [both.align([pair])[0] for pair in PAIRS])


def test_empty_input(pointed: dict[str, Path]) -> None:
    assert aligner(pointed["forward"]).align([]) == []
    assert len(aligner(pointed["forward"]).align(PAIRS[4:])) == 2


@pytest.fixture
def other_vocabulary(tmp_path: Path) -> Path:
    """A forward model with another vocabulary."""
    expected = Path(__file__).parents[2] / "expected" / "models"
    return Path(shutil.copytree(expected / "forward", tmp_path / "other_vocabulary"))


def test_models_that_cannot_align_are_errors(pointed: dict[str, Path], other_vocabulary: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="--symmetrize needs a forward and a backward model, found only forward models"
    ):
        aligner(other_vocabulary, pointed["forward"], symmetrize="union")
    with pytest.raises(InputError, match=r"nowhere: not a model folder, it has no config\.json"):
        aligner(other_vocabulary, tmp_path / "nowhere")
    model = load_model(other_vocabulary, torch.device("cpu"))
    with torch.no_grad():
        model.network.source_embedding.weight.fill_(torch.nan)
    save_weights(other_vocabulary, model.network)
    with pytest.raises(InputError, match="other_vocabulary: the attention of this model is not finite"):
        aligner(other_vocabulary).align(PAIRS)
    config = json.loads((other_vocabulary / "config.json").read_text())
    config["architecture"] |= {"decoder": "no-attention", "attention_terms": [], "objectives": []}
    (other_vocabulary / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="other_vocabulary: a model without attention to the source cannot align"):
        aligner(other_vocabulary)


SOURCE, TARGET = ["low", "newer", "widest"], ["lowest", "new", "zorb", "wider"]
AFTER = {"decoder": "attend-after", "guided_alignment": 1.0}
TRANSFORMER = {"decoder": "transformer", "encoder": "transformer", "hidden_size": 128, "guided_alignment": 1.0}


def model_of(subwords: bool = False, right_to_left: bool = False, **parts: Any) -> Model:
    architecture, training = override(Architecture(), Training(bpe=25 if subwords else 0, min_frequency=1), parts)
    vocabulary = build_vocabulary([["low", "newer"], ["lowest", "new", "wide"]] * 5, training)
    config = ModelConfig("x", "forward", architecture, training, right_to_left=right_to_left)
    with torch.device("meta"):
        network = EncoderDecoder(architecture, len(vocabulary), len(vocabulary))
    return Model(config, network, vocabulary, vocabulary, torch.device("cpu"), "")


@pytest.mark.parametrize(
    ("parts", "ahead"),
    [
        ({}, 0),
        ({"guided_alignment": 1.0}, 0),
        (AFTER, 1),
        (AFTER | {"guided_alignment": 0.0}, 0),
        (AFTER | {"attention_score": "location"}, 0),
        (AFTER | {"lexicon": "bias"}, 0),
        ({"decoder": "attend-between", "decoder_layers": 2, "guided_alignment": 1.0}, 0),
        (TRANSFORMER, 0),
    ],
)
@pytest.mark.parametrize("right_to_left", [False, True])
@pytest.mark.parametrize("subwords", [False, True])
def test_rows_of_words_combine_rows_of_subwords(
    subwords: bool, right_to_left: bool, parts: dict[str, Any], ahead: int
) -> None:
    """A row is the mean over the target subwords and the sum over the source subwords."""
    model = model_of(subwords, right_to_left, **parts)
    sources = [(i, subword) for i, word in enumerate(SOURCE) for subword in model.source.encode([word])]
    targets = [(j, subword) for j, word in enumerate(TARGET) for subword in model.target.encode([word])]
    assert (len(sources) > len(SOURCE) and len(targets) > len(TARGET)) == subwords
    rows = np.random.default_rng(1).random((len(targets) + 1, len(sources) + 2), dtype=np.float32)
    predicted = list(enumerate(reversed(targets) if right_to_left else targets, start=ahead))  # (row, (word, subword))
    wanted = np.zeros((len(TARGET), len(SOURCE) + 2))
    for j in range(len(TARGET)):
        own = [rows[row] for row, (word, _) in predicted if word == j]
        for row in own:
            wanted[j, 0] += row[0] / len(own)
            wanted[j, -1] += row[-1] / len(own)
            for column, (i, _) in enumerate(sources, start=1):
                wanted[j, 1 + i] += row[column] / len(own)
    found = boundary_rows(model, SOURCE, TARGET, rows)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert found.dtype == np.float32
    assert np.array_equal(word_rows(model, SOURCE, TARGET, rows), found[:, 1:-1])


def test_rows_of_an_empty_side() -> None:
    model = model_of(subwords=True)
    rows = np.ones((1, len(model.source.encode(SOURCE)) + 2), dtype=np.float32)
    assert word_rows(model, SOURCE, [], rows).shape == (0, 3)
    rows = np.ones((len(model.target.encode(TARGET)) + 1, 2), dtype=np.float32)
    assert word_rows(model, [], TARGET, rows).shape == (4, 0)


def test_rows_of_the_wrong_shape_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"rows \(4, 5\) of 3 source and 4 target tokens"):
        word_rows(model_of(), SOURCE, TARGET, np.ones((4, 5), dtype=np.float32))


PAIR = (("low", "newer", "widest"), ("lowest", "new", "zorb", "wider"))


def fine_model(subwords: int = 0, direction: str = "forward", right_to_left: bool = False, **parts: Any) -> Model:
    sizes = {"embedding_size": 4, "hidden_size": 3, "attention_size": 5, "granularity": "fine"}
    architecture, training = override(Architecture(), Training(bpe=subwords, min_frequency=1), sizes | parts)
    vocabulary = build_vocabulary([["low", "newer"], ["lowest", "new", "wide"]] * 5, training)
    config = ModelConfig("x", direction, architecture, training, right_to_left=right_to_left)
    torch.manual_seed(1)
    network = EncoderDecoder(architecture, len(vocabulary), len(vocabulary)).eval()
    with torch.no_grad():
        network.get_parameter("decoder.attention.score.out.weight").mul_(100)
    return Model(config, network, vocabulary, vocabulary, torch.device("cpu"), "")


@pytest.mark.parametrize("right_to_left", [False, True])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("parts", [{"subwords": 25}, {}, {"decoder": "attend-after", "attention_window": "local-m"}])
def test_dimension_rows_average_to_the_attention(parts: dict[str, Any], direction: str, right_to_left: bool) -> None:
    model = fine_model(direction=direction, right_to_left=right_to_left, **parts)
    read, predicted = PAIR[::-1] if direction == "backward" else PAIR
    weights = dimension_rows(model, PAIR)
    assert weights.shape == (len(predicted), len(read), model.config.architecture.annotation)
    assert weights.dtype == np.float32
    ((_, scores),) = score_pairs([model], [PAIR])
    wanted = word_rows(model, read, predicted, scores.attention[0].numpy())
    np.testing.assert_allclose(weights.mean(axis=2), wanted, atol=1e-6)
    assert weights.std(axis=2).max() > 0.02


def test_dimension_rows_weight_the_annotations_of_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    model, contexts, states = fine_model(attend_bos_eos=False), [], []
    attend = Attention.forward

    def kept(self: Attention, query: Query, source: Source, history: History) -> Attended:
        attended = attend(self, query, source, history)
        contexts.append(attended.context[0])
        states.append(source.states[0, 1:-1])  # (I, K)
        return attended

    monkeypatch.setattr(Attention, "forward", kept)
    weights = dimension_rows(model, PAIR)
    for j, row in enumerate(weights):
        np.testing.assert_allclose((row * states[j].numpy()).sum(axis=0), contexts[j].numpy(), atol=1e-6)


def test_dimension_rows_leave_no_hooks() -> None:
    model = fine_model()
    dimension_rows(model, PAIR)
    assert model.network.decoder.attention is not None
    assert not model.network.decoder.attention.window._forward_hooks
