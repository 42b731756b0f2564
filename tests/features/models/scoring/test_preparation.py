"""Preparing a network for scoring does not change its scores, except for rounding in lower precision."""

import copy

import numpy as np
import torch

from features.models.batches import pad
from features.models.network.model import EncoderDecoder, TokenScores
from features.models.scoring.preparation import Fused, fuse_context_weights, lower
from features.models.settings import Architecture

CPU = torch.device("cpu")
SOURCES = [[4, 5, 6, 7, 8], [5, 1, 9], [7], []]
TARGETS = [[4, 4, 5], [6, 7, 1, 9, 5], [], [8]]


def score(network: EncoderDecoder) -> TokenScores:
    return network.score(network.encode(pad(SOURCES, CPU)), pad(TARGETS, CPU))


def test_fusing_context_weights_does_not_change_scores(network: EncoderDecoder, architecture: Architecture) -> None:
    fused = copy.deepcopy(network)
    fuse_context_weights(fused)
    for found, wanted in zip(score(fused), score(network), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    attends = architecture.decoder not in ("no-attention", "transformer") and architecture.granularity == "word"
    assert any(isinstance(part, Fused) for part in fused.modules()) == attends


def test_lower_precision_gives_close_scores(network: EncoderDecoder) -> None:
    network = network.float()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    exact = score(network)
    for stepwise in (False, True):
        lowered = copy.deepcopy(network)
        lower(lowered, stepwise)
        assert {weight.dtype for weight in lowered.parameters()} == {torch.float32, torch.bfloat16}
        layers = [weight for name, weight in lowered.named_parameters() if ".recurrence." in name and weight.dim() > 1]
        assert not stepwise or {weight.dtype for weight in layers} <= {torch.bfloat16}
        assert torch.equal(lowered.target_embedding.weight, network.target_embedding.weight)
        assert lowered.softmax.bias is None or lowered.softmax.bias.dtype == torch.float32
        if not stepwise:
            found = score(lowered)
            assert found.log_probs.dtype == torch.float32
            np.testing.assert_allclose(found.log_probs, exact.log_probs, atol=0.02)
            assert (found.log_probs - exact.log_probs).abs().max() > 1e-7
