"""The networks equal a slow implementation, which follows the equations of the papers value by value."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from features.models.batches import pad
from features.models.network.lexicon import Lexicon
from features.models.network.model import EncoderDecoder
from features.models.network.objectives import MIN_VARIANCE, trace
from features.models.presets import PRESETS, resolve
from features.models.settings import Architecture
from features.models.vocabulary import BEGIN, END

Array = NDArray[np.float64]
CPU = torch.device("cpu")
SOURCES = [[4, 5, 6, 7, 8], [5, 1, 9], [7], []]
TARGETS = [[4, 4, 5], [6, 7, 1, 9, 5, 4, 4], [], [8]]


def slow_implementation(
    network: EncoderDecoder, architecture: Architecture, source: Sequence[int], target: Sequence[int]
) -> "Slow | Transformer":
    """Return the slow implementation for a sentence pair."""
    kind = Transformer if architecture.decoder == "transformer" else Slow
    return kind(network, architecture, source, target)


def test_log_probabilities_and_attention_equal_the_equations(
    network: EncoderDecoder, architecture: Architecture
) -> None:
    with torch.inference_mode():
        scores = network.score(network.encode(pad(SOURCES, CPU)), pad(TARGETS, CPU))
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        slow = slow_implementation(network, architecture, source, target)
        steps, positions = len(target) + 1, len(source) + 2
        np.testing.assert_allclose(scores.log_probs[number, :steps], slow.log_probs, atol=1e-9)
        if architecture.decoder != "no-attention":
            np.testing.assert_allclose(scores.attention[number, :steps, :positions], slow.rows, atol=1e-9)


@pytest.mark.parametrize(
    ("preset", "softmax", "below"),
    [("yang-window11", False, True), ("luong-global-dot", False, False), ("rnnsearch", True, True)],
)
def test_biases_of_layers_follow_the_papers(preset: str, softmax: bool, below: bool) -> None:
    """Biases of the softmax and of the layer below it.

    Yang et al.: below only (eq. 8, not eq. 9). Luong's code: none. mantis (Cohn et al.): both.
    """
    names = dict(EncoderDecoder(PRESETS[preset].architecture, 10, 10).named_parameters())
    assert ("softmax.bias" in names) == softmax
    assert bool({"decoder.combine.bias", "decoder.word_output.bias"} & set(names)) == below


@pytest.mark.parametrize(
    "architecture", ["cohn-align-glofer", "coverage", "between-gru", "transformer-uneven"], indirect=True
)
def test_objectives_equal_the_equations(network: EncoderDecoder, architecture: Architecture) -> None:
    expected = 0.0
    assert set(architecture.objectives) <= {"coverage", "fertility"}
    for source, target in zip(SOURCES, TARGETS, strict=True):
        slow = slow_implementation(network, architecture, source, target)
        for i in range(1, len(source) + 1):
            fertility = sum(row[i] for row in slow.rows)
            if "coverage" in architecture.objectives:
                expected -= (1 - fertility) ** 2
            if "fertility" in architecture.objectives:
                hidden = np.tanh(slow.linear("objectives.fertility.hidden", slow.e[i]))
                mean, spread = (math.log1p(math.exp(x)) for x in slow.linear("objectives.fertility.out", hidden))
                variance = spread + MIN_VARIANCE
                expected += -0.5 * math.log(2 * math.pi * variance) - (fertility - mean) ** 2 / (2 * variance)
    bonus = network(pad(SOURCES, CPU), pad(TARGETS, CPU)).bonus
    assert math.isclose(float(bonus.detach()), expected, abs_tol=1e-9)


def test_global_fertility_has_the_number_of_weights_of_the_paper() -> None:
    """Cohn et al., table 2: 0.5M weights for the sizes 512/512/256."""
    architecture, _ = resolve(PRESETS["cohn-align-glofer"], True, {})
    weights = sum(weight.numel() for weight in EncoderDecoder(architecture, 10, 10).objectives.parameters())
    assert round(weights / 1e6, 1) == 0.5


def test_the_trace_equals_its_definition(
    pair_of_networks: tuple[EncoderDecoder, EncoderDecoder], aligned: Architecture
) -> None:
    forward, backward = pair_of_networks
    traces = trace(
        forward(pad(SOURCES, CPU), pad(TARGETS, CPU)).rows, backward(pad(TARGETS, CPU), pad(SOURCES, CPU)).rows
    )
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        there, back = Slow(forward, aligned, source, target).rows, Slow(backward, aligned, target, source).rows
        expected = sum(there[j][i + 1] * back[i][j + 1] for j in range(len(target) + 1) for i in range(len(source) + 1))
        assert math.isclose(float(traces[number].detach()), expected, abs_tol=1e-9)
        assert expected <= min(len(source), len(target)) + 1


@pytest.fixture
def aligned() -> Architecture:
    return Architecture(
        attention_terms=("position", "markov", "fertility"), embedding_size=4, hidden_size=5, attention_size=6
    )


@pytest.fixture
def pair_of_networks(aligned: Architecture) -> tuple[EncoderDecoder, EncoderDecoder]:
    torch.manual_seed(5)
    networks = EncoderDecoder(aligned, 10, 10).double(), EncoderDecoder(aligned, 10, 10).double()
    for network in networks:
        for weight in network.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    return networks


def log_softmax_of(
    network: EncoderDecoder, a: Architecture, w: Mapping[str, Array], u: Array, row: Sequence[float], source: list[int]
) -> Array:
    """Return log p of every word, given the softmax input and the row of attention."""
    projected = w["softmax.projection.weight"] @ u if a.tied_softmax else u
    vectors = w["target_embedding.weight" if a.tied_softmax else "softmax.weight"]
    logits = np.array([vector @ projected for vector in vectors]) + w.get("softmax.bias", 0.0)
    if network.lexicon:
        logits = with_lexicon(network.lexicon, a.lexicon, w, logits, row, source)
    log_probs: Array = logits - math.log(sum(math.exp(value) for value in logits))
    return log_probs


def with_lexicon(
    lexicon: Lexicon, kind: str, w: Mapping[str, Array], logits: Array, row: Sequence[float], source: list[int]
) -> Array:
    """Return logits with the lexicon of Arthur et al. (2016), as a bias or as a mixture.

    In a mixture, the softmax has the probability mass that the lexicon leaves.
    """
    known = np.zeros_like(logits)
    for weight, word in zip(row, source, strict=True):
        for translation, p in zip(lexicon.words[word].tolist(), lexicon.probabilities[word].tolist(), strict=True):
            known[translation] += weight * p
    if kind == "bias":
        return logits + np.log(known + 0.001)
    known *= sigmoid(w["lexicon.gate"])
    return np.log(known + (1 - known.sum()) * np.exp(logits) / np.exp(logits).sum())


class Transformer:
    """A transformer built from the layers of torch: log p of every target word and the rows of attention."""

    def __init__(self, network: EncoderDecoder, a: Architecture, source: Sequence[int], target: Sequence[int]) -> None:
        self.w = dict(network.named_parameters())
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True, "dtype": torch.float64}
        with torch.no_grad():
            rows = self.read("source_embedding", [BEGIN, *source, END])
            for number in range(a.encoder_layers):
                layer = torch.nn.TransformerEncoderLayer(
                    a.hidden_size, a.attention_heads, a.feedforward_size, **options
                )
                rows = self.filled(layer, f"encoder.layers.{number}")(rows)
            annotations = self.norm("encoder.norm", rows)
            self.e = annotations[0].numpy()
            rows = self.read("target_embedding", [BEGIN, *target])
            later = torch.full((len(target) + 1,) * 2, -math.inf, dtype=torch.float64).triu(1)
            closed = torch.zeros(len(target) + 1, len(source) + 2, dtype=torch.float64)
            if not a.attend_bos_eos and source:
                closed[:, [0, -1]] = -math.inf
            for number in range(a.decoder_layers):
                above = torch.nn.TransformerDecoderLayer(
                    a.hidden_size, a.attention_heads, a.feedforward_size, **options
                )
                above.multihead_attn.register_forward_pre_hook(self.keep, with_kwargs=True)
                rows = self.filled(above, f"decoder.layers.{number}")(rows, annotations, later, memory_mask=closed)
            outputs = self.norm("decoder.norm", rows)[0].numpy()
        arrays = {name: weight.detach().numpy() for name, weight in self.w.items()}
        sentence = [BEGIN, *source, END]
        steps = [log_softmax_of(network, a, arrays, *step, sentence) for step in zip(outputs, self.rows, strict=True)]
        self.log_probs = np.array([step[word] for step, word in zip(steps, [*target, END], strict=True)])

    def keep(self, attention: torch.nn.Module, inputs: Sequence[torch.Tensor], options: dict[str, Any]) -> None:
        """Store the rows of a layer's attention to the source."""
        self.rows = attention.forward(*inputs, **options | {"need_weights": True})[1][0].numpy()

    def linear(self, name: str, x: Array) -> Array:
        """Return W x + b."""
        product: Array = self.w[f"{name}.weight"].detach().numpy() @ x
        return product + self.w[f"{name}.bias"].detach().numpy()

    def read(self, name: str, words: Sequence[int]) -> torch.Tensor:
        """Return embeddings with positional encodings (1, T, H)."""
        size = self.w[f"{name}.weight"].shape[1]
        vectors = self.w[f"{name}.weight"][list(words)] * math.sqrt(size)
        for position in range(len(words)):
            for number in range(size):
                angle = position / 10000 ** (2 * (number // 2) / size)
                vectors[position, number] += math.cos(angle) if number % 2 else math.sin(angle)
        return vectors.unsqueeze(0)

    def norm(self, name: str, rows: torch.Tensor) -> torch.Tensor:
        weight, bias = self.w[f"{name}.weight"], self.w[f"{name}.bias"]
        return torch.nn.functional.layer_norm(rows, rows.shape[-1:], weight, bias)

    def filled(self, layer: torch.nn.Module, name: str) -> torch.nn.Module:
        """Copy the weights of the tested network into a layer of torch and return it."""
        parts = {"self_attn.in_proj_": ["attention.project"], "self_attn.out_proj.": ["attention.out"]}
        parts |= {"norm1.": ["attention.norm"]}
        parts |= {"linear1.": ["feedforward.enter"], "linear2.": ["feedforward.leave"]}
        if isinstance(layer, torch.nn.TransformerDecoderLayer):
            parts |= {"multihead_attn.in_proj_": ["source_attention.query", "source_attention.keys_values"]}
            parts |= {"multihead_attn.out_proj.": ["source_attention.out"]}
            parts |= {"norm2.": ["source_attention.norm"], "norm3.": ["feedforward.norm"]}
        else:
            parts |= {"norm2.": ["feedforward.norm"]}
        weights = {
            f"{theirs}{kind}": torch.cat([self.w[f"{name}.{part}.{kind}"] for part in ours])
            for theirs, ours in parts.items()
            for kind in ("weight", "bias")
        }
        layer.load_state_dict(weights)
        return layer


class Slow:
    """A recurrent network for one sentence pair: log p of every target word and the rows of attention."""

    def __init__(
        self, network: EncoderDecoder, architecture: Architecture, source: Sequence[int], target: Sequence[int]
    ) -> None:
        self.w: dict[str, Array] = {name: weight.detach().numpy() for name, weight in network.named_parameters()}
        self.a = architecture
        self.source_length = len(source)
        self.allowed = list(range(len(source) + 2))
        if not architecture.attend_bos_eos and source:
            self.allowed = self.allowed[1:-1]
        x = [self.w["source_embedding.weight"][word] for word in (BEGIN, *source, END)]
        gate = np.ones(architecture.embedding_size)
        if architecture.contextual_embeddings:
            hidden = [np.tanh(self.linear("context.word", word)) for word in x[1:-1]]
            context = sum(hidden) / len(source) if source else np.zeros(architecture.embedding_size)
            x = [word * sigmoid(self.linear("context.source", context)) for word in x]
            gate = sigmoid(self.linear("context.target", context))
        state = self.encode(x)
        self.rows: list[list[float]] = []
        self.memory = [self.nothing(architecture.memory_size) for _ in x]
        self.log_probs = []
        feed: Array = np.zeros(0)
        if architecture.input_feeding != "none":
            feed = np.zeros(
                architecture.hidden_size if architecture.input_feeding == "output" else architecture.annotation
            )
        for j, word in enumerate((*target, END), start=1):
            y = gate * self.w["target_embedding.weight"][BEGIN if j == 1 else target[j - 2]]
            if architecture.decoder == "attend-first":
                context = self.attend(state[-1][0], y, j)
                state = self.step(y, context, state)
                u = state[-1][0]
                if architecture.softmax_input == "tanh":
                    u = self.combined(u, context, y)
            elif architecture.decoder == "attend-between":
                state[:1] = self.step(y, feed, state[:1])
                u = state[0][0]
                context = self.attend(u, y, j)
                for layer in range(1, architecture.decoder_layers):
                    state[layer] = self.upper(f"decoder.uppers.{layer - 1}", context, u, state[layer])
                    u = u + state[layer][0]
                u = self.combined(u, context, y)
            else:
                state = self.step(y, feed, state)
                u = state[-1][0]
                if architecture.decoder == "attend-after":
                    context = self.attend(u, y, j)
                    u = np.tanh(self.linear("decoder.combine", np.concatenate([context, u])))
                    feed = {"none": feed, "output": u, "context": context}[architecture.input_feeding]
            log_probs = log_softmax_of(
                network, architecture, self.w, u, self.rows[-1] if self.rows else [], [BEGIN, *source, END]
            )
            self.log_probs.append(float(log_probs[word]))

    def linear(self, name: str, x: Array) -> Array:
        """Return W x + b, or W x if the layer has no bias."""
        product: Array = self.w[f"{name}.weight"] @ x
        return product + self.w.get(f"{name}.bias", 0.0)

    def nothing(self, size: int) -> list[Array]:
        return [np.zeros(size) for _ in range(2 if self.a.cell == "lstm" else 1)]

    def encode(self, x: list[Array]) -> list[list[Array]]:
        """Set the annotations and return the initial state of the decoder."""
        if self.a.encoder == "unidirectional":
            order = list(range(len(x)))
            if self.a.reverse_source:
                order[1:-1] = order[1:-1][::-1]
            outputs = [x[i] for i in order]
            last = []
            for layer in range(self.a.encoder_layers):
                outputs, state = self.run("encoder.stack", layer, outputs, self.first(layer))
                last.append(state)
            self.e = [outputs[order.index(i)] for i in range(len(x))]
            return last
        self.e = x
        for layer in range(self.a.encoder_layers):
            ahead, _ = self.run(f"encoder.forwards.{layer}", 0, self.e, self.first(2 * layer))
            back, _ = self.run(f"encoder.backwards.{layer}", 0, self.e[::-1], self.first(2 * layer + 1))
            self.e = [np.concatenate(pair) for pair in zip(ahead, back[::-1], strict=True)]
        outputs = np.split(np.tanh(self.linear("decoder.bridge", back[-1])), self.a.decoder_layers)
        return [[output, *self.nothing(self.a.hidden_size)[1:]] for output in outputs]

    def first(self, number: int) -> list[Array]:
        """Return the initial state of an encoder layer. It is learned in Cohn et al. (eq. 1, footnote 1)."""
        if self.a.initial_state == "zero":
            return self.nothing(self.a.hidden_size)
        return [vectors[number] for vectors in self.w["encoder.first.vectors"]]

    def run(self, name: str, layer: int, x: list[Array], state: list[Array]) -> tuple[list[Array], list[Array]]:
        outputs = []
        for value in x:
            state = self.cell(self.entering(name, layer, value), self.recurrent(name, layer, state), state)
            outputs.append(state[0])
        return outputs, state

    def entering(self, name: str, layer: int, x: Array) -> Array:
        product: Array = self.w[f"{name}.weight_ih_l{layer}"] @ x
        return product + self.w[f"{name}.bias_ih_l{layer}"]

    def recurrent(self, name: str, layer: int, state: list[Array]) -> Array:
        product: Array = self.w[f"{name}.weight_hh_l{layer}"] @ state[0]
        return product + self.w[f"{name}.bias_hh_l{layer}"]

    def step(self, y: Array, beside: Array, state: list[list[Array]]) -> list[list[Array]]:
        after: list[list[Array]] = []
        for layer, before in enumerate(state):
            entering = self.entering("decoder.recurrence.stack", layer, after[-1][0] if layer else y)
            if layer == 0 and len(beside):
                entering = entering + self.linear("decoder.recurrence.beside", beside)
            after.append(self.cell(entering, self.recurrent("decoder.recurrence.stack", layer, before), before))
        return after

    def upper(self, name: str, context: Array, below: Array, state: list[Array]) -> list[Array]:
        entering = self.linear(f"{name}.beside", context) + self.linear(f"{name}.below", below)
        return self.cell(entering, self.linear(f"{name}.recurrent", state[0]), state)

    def combined(self, top: Array, context: Array, y: Array) -> Array:
        products = self.linear("decoder.context_output", context) + self.linear("decoder.word_output", y)
        combined: Array = np.tanh(top + products)
        return combined

    def cell(self, x: Array, h: Array, state: list[Array]) -> list[Array]:
        if self.a.cell == "rnn":
            return [np.tanh(x + h)]
        if self.a.cell == "gru":
            (r, z, n), (hr, hz, hn) = np.split(x, 3), np.split(h, 3)
            candidate = np.tanh(n + sigmoid(r + hr) * hn)
            return [(1 - sigmoid(z + hz)) * candidate + sigmoid(z + hz) * state[0]]
        enter, forget, new, leave = np.split(x + h, 4)
        memory = sigmoid(forget) * state[1] + sigmoid(enter) * np.tanh(new)
        return [sigmoid(leave) * np.tanh(memory), memory]

    def attend(self, q: Array, y: Array, j: int) -> Array:
        """Set the attention row of step j and return its context."""
        scores = [self.score(q, y, j, i) for i in range(len(self.e))]
        centre, positions = 0.0, self.allowed
        if self.a.attention_score == "location":
            positions = [i for i in positions if i <= self.a.max_positions]
        if self.a.attention_window == "local-m":
            centre = min(j, self.source_length)
        if self.a.attention_window == "local-p":
            hidden = np.tanh(self.linear("decoder.attention.window.hidden", q))
            centre = self.source_length * sigmoid(self.linear("decoder.attention.window.out", hidden))[0]
        if self.a.attention_window != "global":
            positions = [i for i in positions if abs(i - centre) <= self.a.window_radius]
        total = sum(np.exp(scores[i]) for i in positions)
        weights = [
            np.exp(scores[i]) / total if i in positions else np.zeros_like(scores[i]) for i in range(len(self.e))
        ]
        if self.a.attention_window == "local-p":
            sigma = self.a.window_radius / 2
            weights = [weight * math.exp(-((i - centre) ** 2) / (2 * sigma**2)) for i, weight in enumerate(weights)]
        self.rows.append([float(np.mean(weight)) for weight in weights])
        context: Array = sum((weight * e for weight, e in zip(weights, self.e, strict=True)), np.zeros(()))
        return context

    def alpha(self, j: int, i: int) -> float:
        """Return the attention of step j (from 1) to position i, or 0 before step 1 and outside the sentence."""
        return self.rows[j - 1][i] if j > 0 and 0 <= i < len(self.e) else 0.0

    def score(self, q: Array, y: Array, j: int, i: int) -> Array:
        name = "decoder.attention.score"
        if self.a.attention_score == "dot":
            return np.dot(q, self.e[i])
        if self.a.attention_score == "general":
            return np.dot(q, self.linear(f"{name}.key", self.e[i]))
        if self.a.attention_score == "location":
            return self.linear(f"{name}.position", q)[i] if i <= self.a.max_positions else np.array(-np.inf)
        hidden = self.linear(f"{name}.key", self.e[i]) + self.linear(f"{name}.query", q)
        for term in self.a.attention_terms:
            hidden = hidden + self.term(term, y, j, i)
        values = self.linear(f"{name}.out", np.tanh(hidden))
        return values if self.a.granularity == "fine" else values[0]

    def term(self, term: str, y: Array, j: int, i: int) -> Array:
        name = f"decoder.attention.terms.{term}"
        around = range(i - self.a.term_radius, i + self.a.term_radius + 1)
        before = np.array([self.alpha(j - 1, k) for k in around])
        if term == "position":
            there = self.linear(f"{name}.target", np.array([math.log(1 + j)]))
            return there + self.linear(f"{name}.source", np.array([math.log(1 + i), math.log(1 + self.source_length)]))
        if term == "markov":
            return self.linear(f"{name}.window", before)
        if term == "fertility":
            sums = [sum(self.alpha(step, k) for step in range(1, j)) for k in around]
            return self.linear(f"{name}.window", np.array(sums))
        if term == "previous-word":
            return self.linear(f"{name}.word", y)
        assert term == "memory", f"write {term!r} here from its equation"
        state = self.memory[i]
        self.memory[i] = self.cell(
            self.linear(f"{name}.window", before), self.linear(f"{name}.recurrent", state[0]), state
        )
        return self.linear(f"{name}.out", self.memory[i][0])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))
