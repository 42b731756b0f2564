from typing import Any

import numpy as np
import pytest
import torch

from features.models.alignment.rows import sentinel_rows, word_rows
from features.models.config import ModelConfig
from features.models.folder import Model
from features.models.network.model import EncoderDecoder
from features.models.settings import Architecture, Training, override
from features.models.vocabulary import build_vocabulary

SOURCE, TARGET = ["low", "newer", "widest"], ["lowest", "new", "zorb", "wider"]
AFTER = {"wiring": "attend-after", "guidance": 1.0}
TRANSFORMER = {"wiring": "transformer", "encoder": "transformer", "hidden": 128, "guidance": 1.0}


def model_of(pieces: bool = False, right_to_left: bool = False, **parts: Any) -> Model:
    architecture, training = override(Architecture(), Training(bpe=25 if pieces else 0, frequency=1), parts)
    vocabulary = build_vocabulary([["low", "newer"], ["lowest", "new", "wide"]] * 5, training)
    config = ModelConfig("x", "forward", architecture, training, right_to_left=right_to_left)
    with torch.device("meta"):
        network = EncoderDecoder(architecture, len(vocabulary), len(vocabulary))
    return Model(config, network, vocabulary, vocabulary, torch.device("cpu"), "")


@pytest.mark.parametrize(
    ("parts", "ahead"),
    [
        ({}, 0),
        ({"guidance": 1.0}, 0),
        (AFTER, 1),
        (AFTER | {"guidance": 0.0}, 0),
        (AFTER | {"score": "location"}, 0),
        (AFTER | {"lexicon": "bias"}, 0),
        ({"wiring": "attend-between", "layers": 2, "guidance": 1.0}, 0),
        (TRANSFORMER, 0),
    ],
)
@pytest.mark.parametrize("right_to_left", [False, True])
@pytest.mark.parametrize("pieces", [False, True])
def test_rows_of_words_one_by_one(pieces: bool, right_to_left: bool, parts: dict[str, Any], ahead: int) -> None:
    """Each is what the rows of its pieces say of the pieces of source words."""
    model = model_of(pieces, right_to_left, **parts)
    sources = [(i, piece) for i, word in enumerate(SOURCE) for piece in model.source.encode([word])]
    targets = [(j, piece) for j, word in enumerate(TARGET) for piece in model.target.encode([word])]
    assert (len(sources) > len(SOURCE) and len(targets) > len(TARGET)) == pieces
    rows = np.random.default_rng(1).random((len(targets) + 1, len(sources) + 2), dtype=np.float32)
    said = list(enumerate(reversed(targets) if right_to_left else targets, start=ahead))  # (row, (word, piece))
    wanted = np.zeros((len(TARGET), len(SOURCE) + 2))
    for j in range(len(TARGET)):
        own = [rows[row] for row, (word, _) in said if word == j]
        for row in own:
            wanted[j, 0] += row[0] / len(own)
            wanted[j, -1] += row[-1] / len(own)
            for place, (i, _) in enumerate(sources, start=1):
                wanted[j, 1 + i] += row[place] / len(own)
    found = sentinel_rows(model, SOURCE, TARGET, rows)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert found.dtype == np.float32
    assert np.array_equal(word_rows(model, SOURCE, TARGET, rows), found[:, 1:-1])


def test_a_side_without_words() -> None:
    model = model_of(pieces=True)
    rows = np.ones((1, len(model.source.encode(SOURCE)) + 2), dtype=np.float32)
    assert word_rows(model, SOURCE, [], rows).shape == (0, 3)
    rows = np.ones((len(model.target.encode(TARGET)) + 1, 2), dtype=np.float32)
    assert word_rows(model, [], TARGET, rows).shape == (4, 0)


def test_rows_of_other_tokens() -> None:
    with pytest.raises(ValueError, match=r"rows \(4, 5\) of 3 source and 4 target tokens"):
        word_rows(model_of(), SOURCE, TARGET, np.ones((4, 5), dtype=np.float32))
