"""Decoders: they process the target step by step, and one value carries all state from step to step."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.network.attention import Attended, Attention, History, Query
from features.models.network.cells import Layer, Recurrence, StepInput, full_precision, tanh
from features.models.network.source import Source
from features.models.settings import Architecture


class State(NamedTuple):
    """State between two steps. Its rows can be gathered, for batches, beams, and the children of a prefix."""

    step: Tensor  # (B, 1) number of the next step, from 1
    layers: tuple[Layer, ...]  # state of each recurrent layer
    feed: tuple[Tensor, ...]  # (B, …) output or context of the previous step, empty for decoders without input feeding
    history: History  # state of the attention terms


class StepOutput(NamedTuple):
    """Output of one step, or of all steps with an axis T in front."""

    top: Tensor  # (B, H) output of the top layer, or h~_j with `input_feeding=output`
    context: Tensor  # (B, K) context, empty without attention
    row: Tensor  # (B, S) attention weights, zeros without attention


class Decoder(nn.Module, ABC):
    """Base class of the decoders: the first state, the input of a step, and the loop over all steps.

    After a bidirectional encoder the first state is tanh(W_0 backward_1 + b_0) (Bahdanau et al. 2015, without b_0). A
    unidirectional encoder passes on its last state, layer by layer (Sutskever et al. 2014).

    Args:
        architecture: settings of the network.
        additional_size: size of the additional input of `Recurrence`.
        dropout: probability of dropout.
        recurrent_layers: number of layers in `recurrence`. Default: all layers of the decoder.
    """

    attends = True
    recurrent = True
    """Whether a step needs the state after the previous step, so that shorter prefixes are scored first."""
    readers: tuple[str, ...] = ()
    """Names of the linear layers whose input begins with the context."""

    def __init__(
        self, architecture: Architecture, additional_size: int, dropout: float, recurrent_layers: int | None = None
    ) -> None:
        super().__init__()
        hidden, layers = architecture.hidden_size, architecture.decoder_layers
        self.attention = Attention(architecture) if self.attends else None
        self.values: nn.Module = nn.Identity()  # maps annotations to the values that a context sums
        self.recurrence = Recurrence(architecture, additional_size, dropout, recurrent_layers or layers)
        self.bridge = nn.Linear(hidden, layers * hidden) if architecture.encoder == "bidirectional" else None
        self.layers = layers
        self.dropout = nn.Dropout(dropout)

    def draw_vectors(self, vectors: Tensor) -> None:
        """Initialize the word vectors (V, E) of one side."""
        nn.init.uniform_(vectors, -0.1, 0.1)

    def keys(self, annotations: Tensor, source_length: Tensor) -> Tensor:
        """Return the keys (B, S, …) of annotations (B, S, K), once for all steps. They are empty without attention."""
        return self.attention.keys(annotations, source_length) if self.attention else annotations[:, :, :0]

    def start(self, source: Source) -> State:
        """Return the state before the first step."""
        layers = source.last
        if self.bridge is not None:
            backward = source.last[0][0]  # (B, H)
            with full_precision(backward.device):
                outputs = torch.tanh(self.bridge(backward)).chunk(self.layers, dim=1)  # layers of (B, H)
            zeros = (torch.zeros_like(outputs[0]),) * (self.recurrence.cell.num_states - 1)
            layers = tuple((output, *zeros) for output in outputs)
        history = self.attention.start(source) if self.attention else ()
        step = torch.ones_like(source.source_length)  # (B, 1)
        return State(step=step, layers=layers, feed=self.first_feed(source), history=history)

    def first_feed(self, source: Source) -> tuple[Tensor, ...]:
        """Return the feed of the first step, empty for decoders without input feeding."""
        return ()

    def step_input(self, embedded: Tensor) -> StepInput:
        """Return the input of a step, from the vectors (B, E) of the previous words."""
        vectors = self.dropout(embedded)
        recurrence = self.recurrence
        return StepInput(vectors=vectors, gates=recurrence.word_gates(vectors), products=recurrence.products())

    @abstractmethod
    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Return the output of one step and the next state."""

    @abstractmethod
    def output(self, steps: StepOutput, vectors: Tensor) -> Tensor:
        """Return the softmax input (…, H) of one step or of all steps, before dropout.

        `vectors` (…, E) are the vectors of the previous words.
        """

    def forward(self, embedded: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Return the softmax inputs (T, B, H) and the attention weights (T, B, S) of all steps.

        `embedded` (T, B, E) are the vectors of the previous words.
        """
        vectors = self.dropout(embedded)
        steps = self.run(vectors, source)
        return self.dropout(self.output(steps, vectors)), steps.row

    def run(self, vectors: Tensor, source: Source) -> StepOutput:
        """Return the outputs of all steps over word vectors (T, B, E)."""
        return _stack(self._steps(vectors, source), len(vectors))

    def _steps(self, vectors: Tensor, source: Source) -> Iterator[StepOutput]:
        state = self.start(source)
        gates, products = self.recurrence.word_gates(vectors), self.recurrence.products()  # (T, B, gates·H)
        for of_words, of_gates in zip(vectors.unbind(0), gates.unbind(0), strict=True):  # (B, E), (B, gates·H)
            output, state = self.step(StepInput(of_words, of_gates, products), state, source)
            yield output

    def attend(self, query: Query, source: Source, history: History) -> Attended:
        """Attend once and return the result."""
        assert self.attention is not None
        attended: Attended = self.attention(query, source, history)
        return attended


class Unattended(Decoder):
    """Decoder `no-attention`: h_j = LSTM(y_{j-1}, h_{j-1}), and the softmax reads h_j (Sutskever et al. 2014)."""

    attends = False

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__(architecture, 0, dropout)

    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Return the output of one step and the next state."""
        layers = self.recurrence.step(step_input, None, state.layers)
        top = layers[-1][0]
        output = StepOutput(top=top, context=top[:, :0], row=torch.zeros_like(source.bias))  # (B, H), (B, 0), (B, S)
        return output, State(step=state.step + 1, layers=layers, feed=(), history=())

    def output(self, steps: StepOutput, vectors: Tensor) -> Tensor:
        """Return the state of the top layer."""
        return steps.top

    def run(self, vectors: Tensor, source: Source) -> StepOutput:
        """Run all steps with the fused kernel."""
        tops = self.recurrence.run(vectors, self.start(source).layers)  # (T, B, H)
        rows = source.bias.new_zeros(len(tops), *source.bias.shape)  # (T, B, S)
        return StepOutput(top=tops, context=tops[..., :0], row=rows)


class AttendFirst(Decoder):
    """Decoder `attend-first`: the query is the state before the step, and the step reads the context.

    c_j = attend(g_{j-1}); g_j = LSTM([y_{j-1}; c_j], g_{j-1}); u_j = tanh(g_j + W_uc c_j + W_ui y_{j-1})
    (Bahdanau et al. 2015, with the output layer of Cohn et al. 2016, eq. 3). With `softmax_input=state`
    the softmax reads g_j.
    """

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__(architecture, architecture.annotation, dropout)
        hidden = architecture.hidden_size
        self.combines = architecture.softmax_input == "tanh"
        self.readers = ("recurrence.beside", "context_output") if self.combines else ("recurrence.beside",)
        if self.combines:
            self.word_output = nn.Linear(architecture.embedding_size, hidden, bias=architecture.bias)
            self.context_output = nn.Linear(architecture.annotation, hidden, bias=False)

    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Return the output of one step and the next state."""
        query = Query(state=state.layers[-1][0], word=step_input.vectors, step=state.step)
        context, row, history = self.attend(query, source, state.history)
        layers = self.recurrence.step(step_input, context, state.layers)
        after = State(step=state.step + 1, layers=layers, feed=(), history=history)
        return StepOutput(top=layers[-1][0], context=context, row=row), after

    def output(self, steps: StepOutput, vectors: Tensor) -> Tensor:
        """Return u_j, or g_j with `softmax_input=state`."""
        if not self.combines:
            return steps.top
        return tanh(steps.top + self.context_output(steps.context) + self.word_output(vectors))  # (…, H)


class AttendAfter(Decoder):
    """Decoder `attend-after`: the query is the state after the step.

    h_j = LSTM([y_{j-1}; feed_{j-1}], h_{j-1}); c_j = attend(h_j); h~_j = tanh(W_c [c_j; h_j]), which the softmax reads
    (Luong et al. 2015; Yang et al. 2017).

    feed_{j-1} is empty (`none`), h~_{j-1} (`output`, Luong's input feeding) or c_{j-1} (`context`, Yang eq. 4). It
    starts at 0. With a content-based score, Luong et al. take the attention row of step j as the alignment of y_{j-1},
    which step j reads (footnote 14). `alignment.boundary_rows` explains which row this project uses.
    """

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        hidden, annotation = architecture.hidden_size, architecture.annotation
        feed_size = {"none": 0, "output": hidden, "context": annotation}[architecture.input_feeding]
        super().__init__(architecture, feed_size, dropout)
        self.feed, self.feed_size = architecture.input_feeding, feed_size
        self.attends_at_once = architecture.attends_at_once
        self.readers = ("combine", "recurrence.beside") if self.feed == "context" else ("combine",)
        self.combine = nn.Linear(annotation + hidden, hidden, bias=architecture.bias)

    def first_feed(self, source: Source) -> tuple[Tensor, ...]:
        """Return zeros (B, size of the feed), empty without feed."""
        if self.feed == "none":
            return ()
        # After `preparation.fuse_context_weights` a context has the width of `states`, not of an annotation.
        size = self.feed_size if self.feed == "output" else source.states.shape[2]
        return (source.states.new_zeros(len(source.source_length), size),)

    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Return the output of one step and the next state."""
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
        """Return the output of all steps.

        Without feed, the fused kernel computes all states first. Then attention covers all steps at once, or one after
        the other if it has a window, terms or granularity `fine`.
        """
        if self.feed != "none":
            return super().run(vectors, source)
        state = self.start(source)
        tops = self.recurrence.run(vectors, state.layers)  # (T, B, H)
        if self.attends_at_once:
            assert self.attention is not None
            contexts, rows = self.attention.over(tops, source)
            return StepOutput(top=tops, context=contexts, row=rows)
        return _stack(self._attended(tops, vectors, source, state), len(vectors))

    def _attended(self, tops: Tensor, vectors: Tensor, source: Source, state: State) -> Iterator[StepOutput]:
        number, history = state.step, state.history
        for top, word in zip(tops.unbind(0), vectors.unbind(0), strict=True):  # (B, H), (B, E)
            context, row, history = self.attend(Query(state=top, word=word, step=number), source, history)
            number = number + 1
            yield StepOutput(top=top, context=context, row=row)

    def _combined(self, top: Tensor, context: Tensor) -> Tensor:
        return tanh(self.combine(torch.cat([context, top], dim=-1)))  # (…, H)


def _stack(steps: Iterator[StepOutput], count: int) -> StepOutput:
    """Stack the outputs of `count` steps to (T, B, …).

    Without gradients, each output is copied at once into a tensor for all steps. Otherwise the small outputs would stay
    allocated between the large temporary tensors of each step, glibc could not reuse that memory, and the heap would
    grow with every step.
    """
    if torch.is_grad_enabled():
        return StepOutput._make(torch.stack(tensors) for tensors in zip(*steps, strict=True))
    first = next(steps)
    whole = StepOutput._make(part.new_empty(count, *part.shape) for part in first)
    for number, step in enumerate(chain([first], steps)):
        for parts, part in zip(whole, step, strict=True):
            parts[number] = part
    return whole
