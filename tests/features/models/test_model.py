"""Contracts of every preset, and equality with a slow second implementation written from the equations."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from features.models.batches import pad
from features.models.model import EncoderDecoder, TokenScores
from features.models.settings import PRESETS, Architecture, Training, override
from features.models.vocabulary import BEGIN, END, UNKNOWN

Array = NDArray[np.float64]
CPU = torch.device("cpu")
SOURCES = [[4, 5, 6, 7, 8], [5, 1, 9], [7], []]
TARGETS = [[4, 4, 5], [6, 7, 1, 9, 5], [], [8]]


@pytest.fixture(params=PRESETS)
def architecture(request: pytest.FixtureRequest) -> Architecture:
    sizes = {"embedding": 4, "hidden": 5, "attention": 6, "layers": 2}
    return override(PRESETS[request.param].architecture, Training(), sizes)[0]


@pytest.fixture
def network(architecture: Architecture) -> EncoderDecoder:
    torch.manual_seed(3)
    network = EncoderDecoder(architecture, 10, 11).double().eval()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return network


def score(network: EncoderDecoder, sources: list[list[int]], targets: list[list[int]]) -> TokenScores:
    with torch.inference_mode():
        return network.score(network.encode(pad(sources, CPU)), pad(targets, CPU))


def test_equals_the_slow_implementation(network: EncoderDecoder, architecture: Architecture) -> None:
    scores = score(network, SOURCES, TARGETS)
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        log_probs, rows = slow_scores(network, architecture, [BEGIN, *source, END], [*target, END])
        steps, positions = len(target) + 1, len(source) + 2
        np.testing.assert_allclose(scores.log_probs[number, :steps], log_probs, atol=1e-9)
        np.testing.assert_allclose(scores.attention[number, :steps, :positions], rows, atol=1e-9)


def test_rows_of_attention_sum_to_one_and_are_zero_on_padding(network: EncoderDecoder) -> None:
    scores = score(network, SOURCES, TARGETS)
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        steps, positions = len(target) + 1, len(source) + 2
        np.testing.assert_allclose(scores.attention[number, :steps].sum(dim=1), 1, atol=1e-12)
        assert not scores.attention[number, :, positions:].any()
        assert not scores.attention[number, steps:].any()
        assert not scores.log_probs[number, steps:].any()


def test_a_batch_equals_its_rows_one_by_one(network: EncoderDecoder) -> None:
    together = score(network, SOURCES, TARGETS)
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = score(network, [source], [target])
        np.testing.assert_allclose(together.log_probs[number, : len(target) + 1], alone.log_probs[0], atol=1e-12)


def test_unknown_words_are_told(network: EncoderDecoder) -> None:
    unknown = score(network, SOURCES, TARGETS).unknown
    assert unknown.nonzero().tolist() == [[1, TARGETS[1].index(UNKNOWN)]]


def test_loss_is_the_sum_of_all_log_probabilities(network: EncoderDecoder) -> None:
    loss = network.loss(pad(SOURCES, CPU), pad(TARGETS, CPU))
    assert math.isclose(float(loss.detach()), -float(score(network, SOURCES, TARGETS).log_probs.sum()), rel_tol=1e-12)


def test_next_words_are_a_distribution(network: EncoderDecoder) -> None:
    logits, _ = network.decode(network.encode(pad(SOURCES, CPU)), pad(TARGETS, CPU))
    np.testing.assert_allclose(logits.softmax(-1).sum(-1).detach(), 1, atol=1e-12)


def test_the_state_of_a_step_can_be_gathered_by_row(network: EncoderDecoder) -> None:
    source = network.encode(pad(SOURCES, CPU))
    rows = torch.tensor([2, 0, 0, 3, 1])
    words = network.decoder.words(network.target_embedding(torch.tensor([[4, 5, 6, 7], [5, 5, 8, 4]])))
    *_, state = network.decoder.step(words.at(0), network.decoder.start(source), source)
    top, _, _, _ = network.decoder.step(words.at(1), state, source)
    chosen = type(words)(words.gates[:, rows], words.output[:, rows])
    again, _, _, _ = network.decoder.step(chosen.at(1), state.gather(rows), source.gather(rows))
    np.testing.assert_allclose(again.detach(), top.detach()[rows], atol=1e-12)


def test_gradients(network: EncoderDecoder) -> None:
    names, weights = zip(*network.named_parameters(), strict=True)

    def loss(*values: torch.Tensor) -> torch.Tensor:
        inputs = (pad([[4, 5, 6], [7]], CPU), pad([[4, 1], [5, 6]], CPU))
        return torch.func.functional_call(
            Loss(network), dict(zip((f"network.{n}" for n in names), values, strict=True)), inputs
        )

    assert torch.autograd.gradcheck(loss, weights, fast_mode=True)


class Loss(torch.nn.Module):
    def __init__(self, network: EncoderDecoder) -> None:
        super().__init__()
        self.network = network

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.network.loss(source, target)


# The second implementation: one sentence pair, one position at a time, straight from the equations of the papers.


def slow_scores(
    network: EncoderDecoder, architecture: Architecture, source: list[int], target: list[int]
) -> tuple[list[float], list[list[float]]]:
    w = {name: weight.detach().numpy() for name, weight in network.named_parameters()}
    embedded = [w["source_embedding.weight"][word] for word in source]
    forward = slow_encoder(w, "encoder.forwards", embedded)
    backward = slow_encoder(w, "encoder.backwards", embedded[::-1])[::-1]
    e = [np.concatenate(pair) for pair in zip(forward, backward, strict=True)]
    bridge = w["decoder.bridge.weight"] @ backward[0] + w["decoder.bridge.bias"]
    hidden = np.split(np.tanh(bridge), architecture.layers)
    cell = [np.zeros(architecture.hidden) for _ in hidden]
    rows: list[list[float]] = []
    log_probs = []
    for j, word in enumerate(target, start=1):
        y = w["target_embedding.weight"][BEGIN if j == 1 else target[j - 2]]
        f = [slow_score(w, architecture, e, hidden[-1], rows, j, i) for i in range(len(e))]
        exponents = [math.exp(value - max(f)) for value in f]
        row = [value / sum(exponents) for value in exponents]
        c = sum(weight * state for weight, state in zip(row, e, strict=True))
        below = c
        for layer in range(architecture.layers):
            gates = w[f"decoder.gates.{layer}.weight"] @ np.concatenate([below, hidden[layer]])
            if layer == 0:
                gates = gates + w["decoder.word_gates.weight"] @ y + w["decoder.word_gates.bias"]
            else:
                gates = gates + w[f"decoder.gates.{layer}.bias"]
            hidden[layer], cell[layer] = slow_lstm(gates, cell[layer])
            below = hidden[layer]
        u = np.tanh(
            hidden[-1]
            + w["decoder.context_output.weight"] @ c
            + w["decoder.word_output.weight"] @ y
            + w["decoder.word_output.bias"]
        )
        logits = w["softmax.weight"] @ u + w["softmax.bias"]
        log_probs.append(float(logits[word] - math.log(sum(math.exp(value) for value in logits))))
        rows.append(row)
    return log_probs, rows


def slow_score(
    w: dict[str, Array], architecture: Architecture, e: list[Array], g: Array, rows: list[list[float]], j: int, i: int
) -> float:
    """Cohn et al. 2016, equations 5-7 and section 3.3, with k = 1."""
    attention = "decoder.attention"
    total = w[f"{attention}.score.key.weight"] @ e[i] + w[f"{attention}.score.query.weight"] @ g

    def alpha(row: int, position: int) -> float:
        return rows[row][position] if row >= 0 and 0 <= position < len(e) else 0.0

    if "position" in architecture.terms:
        words = len(e) - 2
        total = total + w[f"{attention}.terms.position.target.weight"] @ [math.log(1 + j)]
        total = total + w[f"{attention}.terms.position.source.weight"] @ [math.log(1 + i), math.log(1 + words)]
    if "markov" in architecture.terms:
        window = [alpha(j - 2, i + k) for k in (-1, 0, 1)]
        total = total + w[f"{attention}.terms.markov.window.weight"] @ window
    if "fertility" in architecture.terms:
        window = [sum(alpha(before, i + k) for before in range(j - 1)) for k in (-1, 0, 1)]
        total = total + w[f"{attention}.terms.fertility.window.weight"] @ window
    return float((w[f"{attention}.score.out.weight"] @ np.tanh(total))[0])


def slow_encoder(w: dict[str, Array], name: str, embedded: list[Array]) -> list[Array]:
    hidden = cell = np.zeros(w[f"{name}.weight_hh_l0"].shape[1])
    states = []
    for x in embedded:
        gates = w[f"{name}.weight_ih_l0"] @ x + w[f"{name}.bias_ih_l0"]
        gates = gates + w[f"{name}.weight_hh_l0"] @ hidden + w[f"{name}.bias_hh_l0"]
        hidden, cell = slow_lstm(gates, cell)
        states.append(hidden)
    return states


def slow_lstm(gates: Array, cell: Array) -> tuple[Array, Array]:
    enter, forget, new, leave = np.split(gates, 4)
    memory = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
    return sigmoid(leave) * np.tanh(memory), memory


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))
