"""Attention between the bottom layer and the upper layers of the decoder, so that each layer can run over all steps."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from features.models.network.attention import Query
from features.models.network.cells import Cell, Columns, Layer, StepInput, full_precision, tanh
from features.models.network.decoder import Decoder, State, StepOutput
from features.models.network.source import Source
from features.models.settings import Architecture
from features.models.tables import find


class Upper(nn.Module):
    """A recurrent layer above attention.

    Its input is [c_j; x_j]: the context, of size K, and the output of the layer below, of size H.
    """

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        self.cell: Cell = find("cell", architecture.cell)
        hidden, gates = architecture.hidden_size, self.cell.gates * architecture.hidden_size
        self.beside = Columns(architecture.annotation, gates, bias=False)
        self.below = Columns(hidden, gates)
        self.recurrent = Columns(hidden, gates)
        self.dropout = nn.Dropout(dropout)
        for weight in self.parameters():  # initialized like torch's recurrent layers
            nn.init.uniform_(weight, -(hidden**-0.5), hidden**-0.5)

    def step(self, context: Tensor, below: Tensor, state: Layer) -> Layer:
        """Return the next state, from the context (B, K) and the output (B, H) of the layer below."""
        entering = self.below(self.dropout(below)) + self.beside(self.dropout(context))  # (B, gates·H)
        return self.cell.step(entering, self.recurrent(state[0]), state)

    def run(self, contexts: Tensor, below: Tensor, state: Layer) -> Tensor:
        """Return outputs (T, B, H) of all steps, from contexts (T, B, K) and outputs (T, B, H) of the layer below."""
        entering = self.dropout(torch.cat([contexts, below], dim=-1))  # (T, B, K+H)
        weight_in = torch.cat([self.beside.weight, self.below.weight], dim=1)  # (gates·H, K+H)
        weights = (weight_in, self.recurrent.weight, self.below.bias, self.recurrent.bias)
        exact = [weight.to(below.dtype) for weight in weights]  # the fused kernels require a single precision
        # cuDNN requires contiguous states, but those of `Decoder.start` are slices of one tensor.
        first = self.cell.to_torch(tuple(tensor.unsqueeze(0).contiguous() for tensor in state))  # (1, B, H) each
        with full_precision(entering.device), _separate_weights(entering.device):
            outputs: Tensor = self.cell.run(entering, first, exact, True, 1, 0.0, self.training, False, False)[0]
        return outputs


@contextmanager
def _separate_weights(device: torch.device) -> Iterator[None]:
    """Ignore the warning of cuDNN that weights are not stored together: they are joined in each run.

    On a CPU there is no such warning.
    """
    if device.type != "cuda":
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="RNN module weights")
        yield


class AttendBetween(Decoder):
    """Decoder `attend-between`: the bottom layer queries attention, and all layers above read its context.

    Step j (Wu et al. 2016, section 3):

    * bottom layer: h_j = LSTM_1(y_{j-1}, h_{j-1}), with output x_j = h_j
    * attention: c_j = attend(h_j)
    * each layer above: h_j = LSTM([c_j; x_j], h_{j-1}), with x_j from the layer below. Its output is x_j + h_j
    * softmax input: u_j = tanh(x_j + W_uc c_j + W_ui y_{j-1}), with x_j from the top layer

    In the paper the query is the bottom layer's output of the previous step, and the softmax reads the top layer alone.
    Here the query is the output of the current step, so that each layer runs over all steps at once, and the output
    layer is that of `attend-first`.
    """

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__(architecture, 0, dropout, recurrent_layers=1)
        hidden, above = architecture.hidden_size, range(architecture.decoder_layers - 1)
        self.uppers = nn.ModuleList(Upper(architecture, dropout) for _ in above)
        self.word_output = nn.Linear(architecture.embedding_size, hidden, bias=architecture.bias)
        self.context_output = nn.Linear(architecture.annotation, hidden, bias=False)
        self.readers = (*(f"uppers.{number}.beside" for number in above), "context_output")

    def step(self, step_input: StepInput, state: State, source: Source) -> tuple[StepOutput, State]:
        """Return the output of one step and the next state."""
        (bottom,) = self.recurrence.step(step_input, None, state.layers[:1])
        query = Query(state=bottom[0], word=step_input.vectors, step=state.step)
        context, row, history = self.attend(query, source, state.history)
        layers, top = [bottom], bottom[0]
        for upper, before in zip(self._above(), state.layers[1:], strict=True):
            layers.append(upper.step(context, top, before))
            top = top + layers[-1][0]
        after = State(step=state.step + 1, layers=tuple(layers), feed=(), history=history)
        return StepOutput(top=top, context=context, row=row), after

    def output(self, steps: StepOutput, vectors: Tensor) -> Tensor:
        """Return u_j."""
        return tanh(steps.top + self.context_output(steps.context) + self.word_output(vectors))  # (…, H)

    def run(self, vectors: Tensor, source: Source) -> StepOutput:
        """Run each layer over all steps. After `preparation.fuse_context_weights`, run all layers step by step."""
        if not isinstance(self.values, nn.Identity):
            return super().run(vectors, source)
        assert self.attention is not None
        layers = self.start(source).layers
        tops = self.recurrence.run(vectors, layers[:1])  # (T, B, H)
        contexts, rows = self.attention.over(tops, source)
        for upper, state in zip(self._above(), layers[1:], strict=True):
            tops = tops + upper.run(contexts, tops, state)
        return StepOutput(top=tops, context=contexts, row=rows)

    def _above(self) -> list[Upper]:
        return list(self.uppers)  # type: ignore[arg-type]
