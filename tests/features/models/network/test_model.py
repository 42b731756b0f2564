"""Properties of the networks of all architectures."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from features.models.batches import pad
from features.models.network.attention import Attended, Attention, History, Query
from features.models.network.cells import Product
from features.models.network.model import EncoderDecoder, TokenScores, WordDropout
from features.models.network.softmax import Softmax, TiedSoftmax
from features.models.network.source import Source, gather
from features.models.settings import Architecture
from features.models.vocabulary import BEGIN, END, SPECIAL, UNKNOWN

CPU = torch.device("cpu")
SOURCES = [[4, 5, 6, 7, 8], [5, 1, 9], [7], []]
TARGETS = [[4, 4, 5], [6, 7, 1, 9, 5], [], [8]]


def score(network: EncoderDecoder, sources: list[list[int]], targets: list[list[int]]) -> TokenScores:
    with torch.inference_mode():
        return network.score(network.encode(pad(sources, CPU)), pad(targets, CPU))


def test_rows_of_attention_are_masked_and_normalized(network: EncoderDecoder, architecture: Architecture) -> None:
    scores = score(network, SOURCES, TARGETS)
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        steps, positions = len(target) + 1, len(source) + 2
        rows = scores.attention[number, :steps]
        assert not rows[:, positions:].any()
        assert not scores.attention[number, steps:].any()
        assert not scores.log_probs[number, steps:].any()
        if source and not architecture.attend_bos_eos:
            assert not rows[:, [0, positions - 1]].any()
        if architecture.decoder == "no-attention":
            assert not rows.any()
        elif architecture.attention_window == "local-p":
            assert 0 < rows.sum(dim=1).min() <= rows.sum(dim=1).max() < 1 + 1e-12
        else:
            np.testing.assert_allclose(rows.sum(dim=1), 1, atol=1e-12)


@pytest.mark.filterwarnings("ignore:TF32")  # torch sets all flags of oneDNN together, including those of GPUs
def test_positions_beyond_the_precision_of_bfloat16_are_exact(network: EncoderDecoder) -> None:
    """The numbers 257 and 300 are not exact in bfloat16.

    oneDNN is off, because it has no bfloat16 LSTM for processors without AVX512.
    """
    low = torch.autocast("cpu", torch.bfloat16)
    with torch.backends.mkldnn.flags(enabled=False), low, torch.inference_mode():
        source = network.float().encode(pad([[4] * 257, [5] * 300], CPU))
        state = network.decoder.start(source)
    assert source.source_mask.sum(dim=1).tolist() == [257, 300]
    assert (state.step + 299).tolist() == [[300], [300]]


@pytest.mark.parametrize("architecture", ["choi-atty2d", "choi-context-atty2d", "fine-local-m"], indirect=True)
def test_weights_of_every_dimension_sum_to_one(network: EncoderDecoder, architecture: Architecture) -> None:
    source, attention = network.encode(pad(SOURCES, CPU)), network.decoder.attention
    state, word = (torch.randn(4, size).double() for size in (architecture.hidden_size, architecture.embedding_size))
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
def test_attention_in_slices_gives_the_same_log_probabilities(
    network: EncoderDecoder, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = score(network, SOURCES, TARGETS)
    monkeypatch.setattr("features.models.network.attention.SLICE", size)
    np.testing.assert_allclose(score(network, SOURCES, TARGETS).log_probs, whole.log_probs, atol=1e-12)


def test_networks_that_run_all_steps_at_once_do_not_attend_stepwise(
    network: EncoderDecoder, architecture: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: list[Query] = []
    attend = Attention.forward

    def counted(attention: Attention, query: Query, source: Source, history: History) -> Attended:
        queries.append(query)
        return attend(attention, query, source, history)

    monkeypatch.setattr(Attention, "forward", counted)
    network.decode(network.encode(pad(SOURCES, CPU)), pad(TARGETS, CPU))
    assert bool(queries) != architecture.runs_at_once


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
        gathered = second._replace(vectors=second.vectors[chosen], gates=second.gates[chosen])
        again, _ = network.decoder.step(gathered, gather(state, chosen), gather(source, chosen))
    np.testing.assert_allclose(again.top, step.top[chosen], atol=1e-12)
    np.testing.assert_allclose(again.row, step.row[chosen], atol=1e-12)


@pytest.mark.parametrize("bias", [torch.randn(4, dtype=torch.float64), None])
def test_combined_products_have_the_gradients_of_single_products(bias: torch.Tensor | None) -> None:
    weight, rows = (torch.randn(size, dtype=torch.float64) for size in ((4, 3), (5, 2, 3)))
    weights = [part.requires_grad_() for part in (weight, bias) if part is not None]

    def steps(multiply: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        return torch.stack([multiply(each).exp() for each in rows.requires_grad_()]).sum()

    expected = torch.autograd.grad(steps(lambda each: nn.functional.linear(each, weight, bias)), [rows, *weights])
    product = Product(weight, bias)
    for total in (steps(product), steps(product)):
        gradients = torch.autograd.grad(total, [rows, *weights])
        torch.testing.assert_close(gradients, expected)


def test_unknown_words_are_marked(network: EncoderDecoder) -> None:
    unknown = score(network, SOURCES, TARGETS).unknown
    assert unknown.nonzero().tolist() == [[1, TARGETS[1].index(UNKNOWN)]]


def test_loss_is_the_sum_of_all_log_probabilities(network: EncoderDecoder) -> None:
    loss = network(pad(SOURCES, CPU), pad(TARGETS, CPU)).loss
    assert math.isclose(float(loss.detach()), -float(score(network, SOURCES, TARGETS).log_probs.sum()), rel_tol=1e-12)


def test_full_word_dropout_leaves_only_bos_and_eos(architecture: Architecture) -> None:
    """Word dropout affects only the input words in training, not the predicted words."""
    torch.manual_seed(3)
    network = EncoderDecoder(architecture, 10, 11, word_dropout=1 - 1e-9).double()
    others = [[word % 6 + 4 for word in words] for words in SOURCES]
    target = pad(TARGETS, CPU)
    target_words = target[:, 1:].t()

    def loss(sources: list[list[int]], previous: torch.Tensor) -> float:
        source = network.encode(pad(sources, CPU))
        outputs = network.decoder(network.embed(previous, source), source)[0]
        return float(network.softmax.loss(outputs, target_words)[1])

    first, second = target[:, :-1].t(), target[:, :-1].t().clone()
    second[second >= len(SPECIAL)] = UNKNOWN
    assert loss(SOURCES, first) == loss(others, second)
    assert loss(SOURCES, first) != loss([words[:1] for words in SOURCES], first)
    network.eval()
    assert loss(SOURCES, first) != loss(SOURCES, second)


def test_word_dropout_preserves_the_mean_of_vectors() -> None:
    torch.manual_seed(1)
    words, vectors = torch.tensor([BEGIN, 7, END, UNKNOWN]).repeat(20000, 1), torch.tensor([2.0, -1.0]).double()
    left = WordDropout(0.2)(vectors.expand(*words.shape, 2), words)  # (20000, 4, 2)
    assert (left[:, [0, 2]] == vectors).all()
    others = left[:, [1, 3]]
    assert set(others[..., 0].unique().tolist()) == {0.0, 2.5}
    assert ((others[..., 0] == 0) == (others[..., 1] == 0)).all()
    torch.testing.assert_close(others.mean(dim=(0, 1)), vectors, rtol=0.02, atol=0)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_softmax_and_its_gradients_equal_torch(
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


@pytest.mark.parametrize("bias", [False, True])
def test_the_divergence_and_its_gradients_equal_torch(bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("features.models.network.softmax.BLOCK", 3)
    torch.manual_seed(1)
    words = torch.tensor([[1, 2], [0, 5], [4, 4], [0, 3], [1, 0]])
    vectors = torch.nn.Embedding(6, 3)
    for softmax in (Softmax(4, 6, bias=bias).double(), TiedSoftmax(4, vectors, bias=bias).double()):
        sides = [torch.randn(5, 2, 4).double().requires_grad_() for _ in range(2)]
        inputs = [*sides, *softmax.parameters()]

        def slow(softmax: Softmax = softmax, sides: list[torch.Tensor] = sides) -> torch.Tensor:
            logits = [torch.nn.functional.linear(softmax.project(side), softmax.weight, softmax.bias) for side in sides]
            p, q = (side[words != 0].log_softmax(-1) for side in logits)
            both = [torch.nn.functional.kl_div(*pair, reduction="sum", log_target=True) for pair in ((q, p), (p, q))]
            return both[0] + both[1]

        found = softmax.divergence(*sides, words)
        torch.testing.assert_close(found, slow())
        wanted = torch.autograd.grad(slow() * 1.5, inputs)
        torch.testing.assert_close(torch.autograd.grad(found * 1.5, inputs), wanted)
    assert torch.autograd.gradcheck(lambda *rows: softmax.divergence(*rows, words), sides)


def test_r_drop_without_dropout_doubles_the_loss(architecture: Architecture) -> None:
    torch.manual_seed(3)
    network = EncoderDecoder(architecture, 10, 11).double()
    once, twice = (network(pad(SOURCES, CPU), pad(TARGETS, CPU), 0.1, r_drop) for r_drop in (0.0, 5.0))
    for part in ("loss", "bonus"):
        torch.testing.assert_close(getattr(twice, part), 2 * getattr(once, part))
    torch.testing.assert_close(twice.plain, once.plain)
    torch.testing.assert_close(twice.rows, once.rows.repeat(1, 2, 1))


def test_r_drop_adds_half_its_weight_times_the_divergence() -> None:
    architecture = Architecture(embedding_size=4, hidden_size=5, attention_size=4)
    network = EncoderDecoder(architecture, 10, 11, dropout=0.5).double()
    source, target = pad(SOURCES, CPU), pad(TARGETS, CPU)
    losses = []
    for r_drop in (1e-30, 2.0, 4.0):
        torch.manual_seed(1)
        losses.append(network(source, target, 0.0, r_drop).loss)
    torch.manual_seed(1)
    outputs = network.decode(network.encode(source.repeat(2, 1)), target.repeat(2, 1))[0]
    apart = network.softmax.divergence(*outputs.chunk(2, dim=1), target[:, 1:].t())
    assert float(apart.detach()) > 0.01
    torch.testing.assert_close(losses[1] - losses[0], apart)
    torch.testing.assert_close(losses[2] - losses[0], 2 * apart)


class Loss(torch.nn.Module):
    def __init__(self, softmax: Softmax, words: torch.Tensor, smoothing: float) -> None:
        super().__init__()
        self.softmax, self.words, self.smoothing = softmax, words, smoothing

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.softmax.loss(rows, self.words, self.smoothing)[0]


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_loss_and_gradients_in_bfloat16_are_close_to_float32(architecture: Architecture) -> None:
    """oneDNN is off, because it has no bfloat16 LSTM for processors with only AVX2."""
    torch.manual_seed(3)
    network = EncoderDecoder(architecture, 10, 11)
    source, target = pad(SOURCES, CPU), pad(TARGETS, CPU)
    losses, gradients = [], []
    for low in (False, True):
        network.zero_grad()
        with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", torch.bfloat16, enabled=low):
            outcome = network(source, target, 0.1)
        (outcome.loss - outcome.bonus).backward()
        losses.append(float(outcome.plain))
        slopes = [weight.grad.flatten() for weight in network.parameters() if weight.grad is not None]
        gradients.append(torch.cat(slopes))  # (weights,)
    assert math.isclose(*losses, rel_tol=0.002)
    assert torch.linalg.vector_norm(gradients[1] - gradients[0]) < 0.05 * torch.linalg.vector_norm(gradients[0])


def test_gradients_equal_finite_differences(network: EncoderDecoder) -> None:
    """The check covers all weights at once, along a random direction."""
    names, weights = zip(*network.named_parameters(), strict=True)
    sizes = [weight.numel() for weight in weights]
    inputs = (pad([[4, 5, 6], [7]], CPU), pad([[4, 1], [5, 6]], CPU))

    def loss(values: torch.Tensor) -> torch.Tensor:
        parts = {
            name: part.view_as(weight) for name, part, weight in zip(names, values.split(sizes), weights, strict=True)
        }
        outcome = torch.func.functional_call(network, parts, inputs)
        total: torch.Tensor = outcome.loss - outcome.bonus + outcome.rows.square().sum()
        return total

    values = torch.cat([weight.detach().flatten() for weight in weights]).requires_grad_()  # (weights,)
    assert torch.autograd.gradcheck(loss, values, fast_mode=True, atol=1e-6, rtol=1e-6)
