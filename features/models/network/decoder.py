"""Decoders: one step of the target at a time, with everything that goes from step to step in one value."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.network.attention import Attended, Attention, History, Query
from features.models.network.cells import Layer, Recurrence, StepInput, tanh
from features.models.network.source import Source
from features.models.settings import Architecture


class State(NamedTuple):
    """What a step hands to the next. Rows can be gathered: batches, beams and children of a prefix all do."""

    step: Tensor  # (B, 1) number of the next step, from 1
    layers: tuple[Layer, ...]  # state of each recurrent layer
    feed: tuple[Tensor, ...]  # (B, …) what the step before feeds in, empty if nothing
    history: History  # what the attention terms remember


class StepOutput(NamedTuple):
    """What a step leaves for the softmax, or all steps with an axis T in front."""

    top: Tensor  # (B, H) state of the top layer, or with feed `output` what is made of it
    context: Tensor  # (B, K) what attention saw; empty without attention
    row: Tensor  # (B, S) weights of the source positions; zeros without attention


class Decoder(nn.Module, ABC):
    """What the wirings share: the first state, the words before, and running all steps one after the other.

    After a bidirectional encoder the first state is tanh(W_0 backward_1 + b_0) (Bahdanau et al. 2015, who have no b_0);
    a unidirectional one hands over its last state layer by layer (Sutskever et al. 2014).
    """

    attends = True
    readers: tuple[str, ...] = ()
    """Names of the linear layers whose input begins with the context."""
    stacked = True
    """All recurrent layers are the recurrence; otherwise it is the bottom one alone."""

    def __init__(self, architecture: Architecture, beside: int, dropout: float) -> None:
        super().__init__()
        hidden, layers = architecture.hidden, architecture.layers
        self.attention = Attention(architecture) if self.attends else None
        self.values: nn.Module = nn.Identity()  # of the annotations: what contexts are sums of
        below = architecture if self.stacked else dataclasses.replace(architecture, layers=1)
        self.recurrence = Recurrence(below, beside, dropout)
        self.bridge = nn.Linear(hidden, layers * hidden) if architecture.encoder == "bidirectional" else None
        self.layers = layers
        self.dropout = nn.Dropout(dropout)

    def draw_vectors(self, vectors: Tensor) -> None:
        """Draw the first word vectors (V, E) of a side."""
        nn.init.uniform_(vectors, -0.1, 0.1)

    def keys(self, annotations: Tensor, source_length: Tensor) -> Tensor:
        """(B, S, …) what attention makes of the annotations (B, S, K) once for all steps."""
        return self.attention.keys(annotations, source_length) if self.attention else annotations[:, :, :0]

    def start(self, source: Source) -> State:
        """Return the state before the first step."""
        layers = source.last
        if self.bridge is not None:
            outputs = torch.tanh(self.bridge(source.last[0][0])).chunk(self.layers, dim=1)  # layers of (B, H)
            zeros = (torch.zeros_like(outputs[0]),) * (self.recurrence.cell.kept - 1)
            layers = tuple((output, *zeros) for output in outputs)
        history = self.attention.start(source) if self.attention else ()
        step = torch.ones_like(source.source_length)  # (B, 1)
        return State(step=step, layers=layers, feed=self.first_feed(source), history=history)

    def first_feed(self, source: Source) -> tuple[Tensor, ...]:
        """Return what is fed to the first step: nothing, unless the wiring feeds."""
        return ()

    def step_input(self, embedded: Tensor) -> StepInput:
        """Prepare the vectors (B, E) of previous words for a step."""
        vectors = self.dropout(embedded)
        recurrence = self.recurrence
        return StepInput(vectors=vectors, gates=recurrence.word_gates(vectors), products=recurrence.products())

    @abstractmethod
    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Take one step."""

    @abstractmethod
    def output(self, steps: StepOutput, vectors: Tensor) -> Tensor:
        """(…, H) what the softmax reads, of one step or all, before dropout; `vectors` (…, E) are of words before."""

    def forward(self, embedded: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """(T, B, H) what the softmax reads at all steps, (T, B, S) rows; from vectors (T, B, E) of previous words."""
        vectors = self.dropout(embedded)
        steps = self.run(vectors, source)
        return self.dropout(self.output(steps, vectors)), steps.row

    def run(self, vectors: Tensor, source: Source) -> StepOutput:
        """Take all steps over word vectors (T, B, E)."""
        return _stack(self._steps(vectors, source), len(vectors))

    def _steps(self, vectors: Tensor, source: Source) -> Iterator[StepOutput]:
        state = self.start(source)
        gates, products = self.recurrence.word_gates(vectors), self.recurrence.products()  # (T, B, gates·H)
        for of_words, of_gates in zip(vectors.unbind(0), gates.unbind(0), strict=True):  # (B, E), (B, gates·H)
            output, state = self.step(StepInput(of_words, of_gates, products), state, source)
            yield output

    def attend(self, query: Query, source: Source, history: History) -> Attended:
        """Attend once; see `Attention`."""
        assert self.attention is not None
        attended: Attended = self.attention(query, source, history)
        return attended


class Unattended(Decoder):
    """h_j = LSTM(y_{j-1}, h_{j-1}), the softmax on h_j: the encoder-decoder of Sutskever et al. 2014."""

    attends = False

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__(architecture, 0, dropout)

    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Take one step."""
        layers = self.recurrence.step(step_input, None, state.layers)
        top = layers[-1][0]
        output = StepOutput(top=top, context=top[:, :0], row=torch.zeros_like(source.bias))  # (B, H), (B, 0), (B, S)
        return output, State(step=state.step + 1, layers=layers, feed=(), history=())

    def output(self, steps: StepOutput, vectors: Tensor) -> Tensor:
        """Return the top state."""
        return steps.top

    def run(self, vectors: Tensor, source: Source) -> StepOutput:
        """Take all steps with the fused kernel."""
        tops = self.recurrence.run(vectors, self.start(source).layers)  # (T, B, H)
        rows = source.bias.new_zeros(len(tops), *source.bias.shape)  # (T, B, S)
        return StepOutput(top=tops, context=tops[..., :0], row=rows)


class AttendFirst(Decoder):
    """Attention asked by the state before the step, its context read by the step.

    c_j = attend(g_{j-1}); g_j = LSTM([y_{j-1}; c_j], g_{j-1}); u_j = tanh(g_j + W_uc c_j + W_ui y_{j-1})
    (Bahdanau et al. 2015; the output layer as Cohn et al. 2016, eq. 3). With output `state` the softmax reads g_j.
    """

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__(architecture, architecture.annotation, dropout)
        hidden = architecture.hidden
        self.combines = architecture.output == "tanh"
        self.readers = ("recurrence.beside", "context_output") if self.combines else ("recurrence.beside",)
        if self.combines:
            self.word_output = nn.Linear(architecture.embedding, hidden, bias=architecture.bias)
            self.context_output = nn.Linear(architecture.annotation, hidden, bias=False)

    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Take one step."""
        query = Query(state=state.layers[-1][0], word=step_input.vectors, step=state.step)
        context, row, history = self.attend(query, source, state.history)
        layers = self.recurrence.step(step_input, context, state.layers)
        after = State(step=state.step + 1, layers=layers, feed=(), history=history)
        return StepOutput(top=layers[-1][0], context=context, row=row), after

    def output(self, steps: StepOutput, vectors: Tensor) -> Tensor:
        """Return u_j, or g_j."""
        if not self.combines:
            return steps.top
        return tanh(steps.top + self.context_output(steps.context) + self.word_output(vectors))  # (…, H)


class AttendAfter(Decoder):
    """Attention asked by the state after the step.

    h_j = LSTM([y_{j-1}; feed_{j-1}], h_{j-1}); c_j = attend(h_j); h~_j = tanh(W_c [c_j; h_j]), which the softmax reads
    (Luong et al. 2015; Yang et al. 2017). The feed is nothing, `output` h~_{j-1} (Luong's input feeding), or `context`
    c_{j-1} (Yang eq. 4); it starts at 0. Content-based rows tell the alignment of the word that step j read, y_{j-1}
    (Luong footnote 14).
    """

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        hidden, annotation = architecture.hidden, architecture.annotation
        feed_size = {"none": 0, "output": hidden, "context": annotation}[architecture.feed]
        super().__init__(architecture, feed_size, dropout)
        self.feed, self.feed_size = architecture.feed, feed_size
        self.readers = ("combine", "recurrence.beside") if self.feed == "context" else ("combine",)
        self.combine = nn.Linear(annotation + hidden, hidden, bias=architecture.bias)

    def first_feed(self, source: Source) -> tuple[Tensor, ...]:
        """(B, feed) zeros."""
        if self.feed == "none":
            return ()
        size = self.feed_size if self.feed == "output" else source.states.shape[2]
        return (source.states.new_zeros(len(source.source_length), size),)

    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Take one step."""
        layers = self.recurrence.step(step_input, state.feed[0] if state.feed else None, state.layers)
        top = layers[-1][0]
        query = Query(state=top, word=step_input.vectors, step=state.step)
        context, row, history = self.attend(query, source, state.history)
        top = self._combined(top, context) if self.feed == "output" else top
        feed = {"none": (), "output": (top,), "context": (context,)}[self.feed]
        after = State(step=state.step + 1, layers=layers, feed=feed, history=history)
        return StepOutput(top=top, context=context, row=row), after

    def output(self, steps: StepOutput, vectors: Tensor) -> Tensor:
        """Return h~_j."""
        return steps.top if self.feed == "output" else self._combined(steps.top, steps.context)

    def run(self, vectors: Tensor, source: Source) -> StepOutput:
        """Take all steps; without feed the recurrence runs ahead of attention, with the fused kernel."""
        steps = self._steps(vectors, source) if self.feed != "none" else self._after(vectors, source)
        return _stack(steps, len(vectors))

    def _after(self, vectors: Tensor, source: Source) -> Iterator[StepOutput]:
        state = self.start(source)
        tops, number, history = self.recurrence.run(vectors, state.layers), state.step, state.history  # tops (T, B, H)
        for top, word in zip(tops.unbind(0), vectors.unbind(0), strict=True):  # (B, H), (B, E)
            context, row, history = self.attend(Query(state=top, word=word, step=number), source, history)
            number = number + 1
            yield StepOutput(top=top, context=context, row=row)

    def _combined(self, top: Tensor, context: Tensor) -> Tensor:
        return tanh(self.combine(torch.cat([context, top], dim=-1)))  # (…, H)


def _stack(steps: Iterator[StepOutput], count: int) -> StepOutput:
    """(T, B, …) each of `count` steps.

    Where nothing is learned they are copied into place at once: small tensors that stay between the large ones of each
    step would keep glibc from using the room of these again, and the heap would grow with every step.
    """
    if torch.is_grad_enabled():
        return StepOutput._make(torch.stack(tensors) for tensors in zip(*steps, strict=True))
    first = next(steps)
    whole = StepOutput._make(part.new_empty(count, *part.shape) for part in first)
    for number, step in enumerate(chain([first], steps)):
        for parts, part in zip(whole, step, strict=True):
            parts[number] = part
    return whole
