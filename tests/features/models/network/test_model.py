"""What holds for every architecture."""

import math

import numpy as np
import pytest
import torch

from features.models.batches import pad
from features.models.network.attention import Query
from features.models.network.decoder import StepInput
from features.models.network.model import EncoderDecoder, TokenScores
from features.models.network.softmax import Softmax
from features.models.network.source import gather
from features.models.settings import Architecture
from features.models.vocabulary import UNKNOWN

CPU = torch.device("cpu")
SOURCES = [[4, 5, 6, 7, 8], [5, 1, 9], [7], []]
TARGETS = [[4, 4, 5], [6, 7, 1, 9, 5], [], [8]]


def score(network: EncoderDecoder, sources: list[list[int]], targets: list[list[int]]) -> TokenScores:
    with torch.inference_mode():
        return network.score(network.encode(pad(sources, CPU)), pad(targets, CPU))


def test_rows_of_attention(network: EncoderDecoder, architecture: Architecture) -> None:
    scores = score(network, SOURCES, TARGETS)
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        steps, positions = len(target) + 1, len(source) + 2
        rows = scores.attention[number, :steps]
        assert not rows[:, positions:].any()
        assert not scores.attention[number, steps:].any()
        assert not scores.log_probs[number, steps:].any()
        if source and not architecture.sentinels:
            assert not rows[:, [0, positions - 1]].any()
        if architecture.wiring == "none":
            assert not rows.any()
        elif architecture.window == "local-p":
            assert 0 < rows.sum(dim=1).min() <= rows.sum(dim=1).max() < 1 + 1e-12
        else:
            np.testing.assert_allclose(rows.sum(dim=1), 1, atol=1e-12)


@pytest.mark.parametrize("architecture", ["choi-atty2d", "choi-context-atty2d", "fine-local-m"], indirect=True)
def test_weights_of_every_dimension_sum_to_one(network: EncoderDecoder, architecture: Architecture) -> None:
    source, attention = network.encode(pad(SOURCES, CPU)), network.decoder.attention
    state, word = (torch.randn(4, size).double() for size in (architecture.hidden, architecture.embedding))
    query = Query(state=state, word=word, step=source.source_length)
    weights = attention.weights(query, source, attention.start(source)).detach()
    assert weights.shape == (4, 7, architecture.annotation)
    np.testing.assert_allclose(weights.sum(dim=1), 1, atol=1e-12)
    assert not weights[2, 3:].any()


def test_a_batch_equals_its_rows_one_by_one(network: EncoderDecoder) -> None:
    together = score(network, SOURCES, TARGETS)
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = score(network, [source], [target])
        np.testing.assert_allclose(together.log_probs[number, : len(target) + 1], alone.log_probs[0], atol=1e-12)


def test_one_pass_equals_step_by_step(network: EncoderDecoder) -> None:
    with torch.inference_mode():
        source, target = network.encode(pad(SOURCES, CPU)), pad(TARGETS, CPU)
        outputs, rows = network.decode(source, target)
        state = network.decoder.start(source)
        for j in range(target.shape[1] - 1):
            step_input = network.decoder.step_input(network.embed(target[:, j], source))
            step, state = network.decoder.step(step_input, state, source)
            real = target[:, j + 1] != 0
            np.testing.assert_allclose(network.decoder.output(step, step_input.vectors), outputs[j], atol=1e-12)
            np.testing.assert_allclose(step.row[real], rows[j][real], atol=1e-12)


@pytest.mark.parametrize("architecture", ["between-gru"], indirect=True)
@pytest.mark.parametrize("size", [1, 4 * 7 * 6 * 2])
def test_all_steps_in_slices(network: EncoderDecoder, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = score(network, SOURCES, TARGETS)
    monkeypatch.setattr("features.models.network.scores.SLICE", size)
    np.testing.assert_allclose(score(network, SOURCES, TARGETS).log_probs, whole.log_probs, atol=1e-12)


def test_the_state_of_a_step_can_be_gathered_by_row(network: EncoderDecoder) -> None:
    with torch.inference_mode():
        source = network.encode(pad(SOURCES, CPU))
        chosen = torch.tensor([2, 0, 0, 3, 1])
        first, second = (
            network.decoder.step_input(network.embed(torch.tensor(words), source))
            for words in ([4, 5, 6, 7], [5, 5, 8, 4])
        )
        _, state = network.decoder.step(first, network.decoder.start(source), source)
        step, _ = network.decoder.step(second, state, source)
        gathered: StepInput = gather(second, chosen)
        again, _ = network.decoder.step(gathered, gather(state, chosen), gather(source, chosen))
    np.testing.assert_allclose(again.top, step.top[chosen], atol=1e-12)
    np.testing.assert_allclose(again.row, step.row[chosen], atol=1e-12)


def test_unknown_words_are_marked(network: EncoderDecoder) -> None:
    unknown = score(network, SOURCES, TARGETS).unknown
    assert unknown.nonzero().tolist() == [[1, TARGETS[1].index(UNKNOWN)]]


def test_loss_is_the_sum_of_all_log_probabilities(network: EncoderDecoder) -> None:
    loss = network(pad(SOURCES, CPU), pad(TARGETS, CPU)).loss
    assert math.isclose(float(loss.detach()), -float(score(network, SOURCES, TARGETS).log_probs.sum()), rel_tol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_softmax_equals_torch_and_has_its_gradients(
    bias: bool, smoothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("features.models.network.softmax.BLOCK", 3)
    torch.manual_seed(1)
    softmax = Softmax(4, 6, bias=bias).double()
    outputs, words = torch.randn(5, 2, 4).double(), torch.tensor([[1, 2], [0, 5], [4, 4], [0, 3], [1, 0]])
    loss, plain = softmax.loss(outputs, words, smoothing)
    logits = softmax(outputs).flatten(0, 1)
    for ours, share in ((loss, smoothing), (plain, 0.0)):
        known = torch.nn.functional.cross_entropy(
            logits, words.flatten(), ignore_index=0, reduction="sum", label_smoothing=share
        )
        torch.testing.assert_close(ours, known)
    chosen = softmax.log_probs(outputs, words)
    torch.testing.assert_close(chosen, softmax(outputs).log_softmax(-1).gather(-1, words.unsqueeze(-1)).squeeze(-1))
    weights = tuple(softmax.parameters())

    def run(rows: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        names = [name for name, _ in softmax.named_parameters()]
        named = {f"softmax.{name}": value for name, value in zip(names, values, strict=True)}
        total: torch.Tensor = torch.func.functional_call(Loss(softmax, words, smoothing), named, (rows,))
        return total * 1.5

    assert torch.autograd.gradcheck(run, (outputs.requires_grad_(), *weights))


class Loss(torch.nn.Module):
    def __init__(self, softmax: Softmax, words: torch.Tensor, smoothing: float) -> None:
        super().__init__()
        self.softmax, self.words, self.smoothing = softmax, words, smoothing

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.softmax.loss(rows, self.words, self.smoothing).smoothed


def test_a_step_in_bfloat16_is_near_one_in_float32(architecture: Architecture) -> None:
    torch.manual_seed(3)
    network = EncoderDecoder(architecture, 10, 11)
    source, target = pad(SOURCES, CPU), pad(TARGETS, CPU)
    losses = []
    for low in (False, True):
        network.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            outcome = network(source, target, 0.1)
        (outcome.loss - outcome.bonus).backward()
        losses.append(float(outcome.plain))
        assert all(weight.grad is None or weight.grad.isfinite().all() for weight in network.parameters())
    assert math.isclose(*losses, rel_tol=0.02)


def test_gradients(network: EncoderDecoder) -> None:
    names, weights = zip(*network.named_parameters(), strict=True)

    def loss(*values: torch.Tensor) -> torch.Tensor:
        inputs = (pad([[4, 5, 6], [7]], CPU), pad([[4, 1], [5, 6]], CPU))
        outcome = torch.func.functional_call(network, dict(zip(names, values, strict=True)), inputs)
        total: torch.Tensor = outcome.loss - outcome.bonus + outcome.rows.square().sum()
        return total

    assert torch.autograd.gradcheck(loss, weights, fast_mode=True)
