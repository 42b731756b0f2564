from typing import Any

import numpy as np
import pytest
import torch

from features.models.alignment.dimensions import dimension_rows
from features.models.alignment.rows import word_rows
from features.models.config import ModelConfig
from features.models.folder import Model
from features.models.network.attention import Attended, Attention, History, Query
from features.models.network.model import EncoderDecoder
from features.models.network.source import Source
from features.models.scoring.alone import score_pairs
from features.models.settings import Architecture, Training, override
from features.models.vocabulary import build_vocabulary

PAIR = (("low", "newer", "widest"), ("lowest", "new", "zorb", "wider"))


def fine_model(pieces: int = 0, direction: str = "forward", right_to_left: bool = False, **parts: Any) -> Model:
    sizes = {"embedding": 4, "hidden": 3, "attention": 5, "granularity": "fine"}
    architecture, training = override(Architecture(), Training(bpe=pieces, frequency=1), sizes | parts)
    vocabulary = build_vocabulary([["low", "newer"], ["lowest", "new", "wide"]] * 5, training)
    config = ModelConfig("x", direction, architecture, training, right_to_left=right_to_left)
    torch.manual_seed(1)
    network = EncoderDecoder(architecture, len(vocabulary), len(vocabulary)).eval()
    with torch.no_grad():
        network.get_parameter("decoder.attention.score.out.weight").mul_(100)
    return Model(config, network, vocabulary, vocabulary, torch.device("cpu"), "")


@pytest.mark.parametrize("right_to_left", [False, True])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("parts", [{"pieces": 25}, {}, {"wiring": "attend-after", "window": "local-m"}])
def test_their_mean_is_the_row_of_the_model(parts: dict[str, Any], direction: str, right_to_left: bool) -> None:
    model = fine_model(direction=direction, right_to_left=right_to_left, **parts)
    read, said = PAIR[::-1] if direction == "backward" else PAIR
    weights = dimension_rows(model, PAIR)
    assert weights.shape == (len(said), len(read), model.config.architecture.annotation)
    assert weights.dtype == np.float32
    ((_, scores),) = score_pairs([model], [PAIR])
    wanted = word_rows(model, read, said, scores.attention[0].numpy())
    np.testing.assert_allclose(weights.mean(axis=2), wanted, atol=1e-6)
    assert weights.std(axis=2).max() > 0.02


def test_a_context_is_what_they_weigh(monkeypatch: pytest.MonkeyPatch) -> None:
    model, contexts, states = fine_model(sentinels=False), [], []
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


def test_scoring_after_it_keeps_nothing() -> None:
    model = fine_model()
    dimension_rows(model, PAIR)
    assert model.network.decoder.attention is not None
    assert not model.network.decoder.attention.window._forward_hooks
