"""Recurrent layers: over a whole sequence by torch's fused kernels, or one step at a time with the same weights."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from features.models.settings import Architecture
from features.models.tables import find

Layer = tuple[Tensor, ...]
"""State of a layer: (B, H) its output, then what else the cell keeps."""


def tanh(values: Tensor) -> Tensor:
    """Return tanh, on a CPU as 2 sigmoid(2x) - 1, which torch reckons in a third of the time.

    On a CPU in float32 also where autocast multiplied in bfloat16, whose numbers about a half lie 0.004 apart.
    """
    if values.is_cuda:
        return torch.tanh(values)
    values = values.float() if values.dtype == torch.bfloat16 else values
    return torch.sigmoid(values + values).mul(2).sub(1)


class Cell(NamedTuple):
    """A recurrent cell.

    `step` takes what enters (B, gates·H), what comes from the state (B, gates·H), and the state, to the next state.
    """

    gates: int  # blocks of H in its weights
    kept: int  # tensors in the state of a layer
    layers: type[nn.RNNBase]  # torch's module for a stack of them
    step: Callable[[Tensor, Tensor, Layer], Layer]
    run: Callable[..., Any]  # torch's fused kernel of a stack

    def packed(self, state: Layer) -> Tensor | Layer:
        """Return a state as torch's module takes it: what the cell keeps, without the tuple if that is one tensor."""
        return state if self.kept > 1 else state[0]


def _lstm(entering: Tensor, recurrent: Tensor, state: Layer) -> Layer:
    enter, forget, new, leave = (entering + recurrent).chunk(4, dim=1)  # (B, H) each
    memory = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * tanh(new)
    return torch.sigmoid(leave) * tanh(memory), memory


def _gru(entering: Tensor, recurrent: Tensor, state: Layer) -> Layer:
    reset_in, update_in, new_in = entering.chunk(3, dim=1)  # (B, H) each
    reset, update, new = recurrent.chunk(3, dim=1)  # (B, H) each
    candidate = tanh(new_in + torch.sigmoid(reset_in + reset) * new)
    keep = torch.sigmoid(update_in + update)
    return ((1 - keep) * candidate + keep * state[0],)


def _rnn(entering: Tensor, recurrent: Tensor, state: Layer) -> Layer:
    return (tanh(entering + recurrent),)


LSTM = Cell(gates=4, kept=2, layers=nn.LSTM, step=_lstm, run=torch.lstm)
"""Hochreiter & Schmidhuber 1997."""
GRU = Cell(gates=3, kept=1, layers=nn.GRU, step=_gru, run=torch.gru)
"""Cho et al. 2014, in the form of torch: the reset gate acts after the recurrent product."""
RNN = Cell(gates=1, kept=1, layers=nn.RNN, step=_rnn, run=torch.rnn_tanh)
"""Elman 1990."""


def multiplied_in(weight: Tensor) -> torch.dtype:
    """Return the precision of products of a weight: that of autocast, or its own where that is off."""
    device_type = weight.device.type
    return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else weight.dtype


def product(weight: Tensor, rows: Tensor, bias: Tensor | None) -> Tensor:
    """(out, N) W xᵀ + b for rows (N, in), multiplied in the precision of W, which may be lower than theirs.

    On a CPU this is up to twice as fast as x Wᵀ.
    """
    wide = torch.mm(weight, rows.t().to(weight.dtype)).to(rows.dtype)  # (out, N)
    return wide if bias is None else wide.add_(bias.unsqueeze(1))  # (out, N)


def columns(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(…, out) W x + b for rows (…, in): what `functional.linear` gives, laid out in memory by columns.

    The gates of a cell are then blocks without gaps.
    """
    return product(weight, rows.flatten(0, -2), bias).t().view(*rows.shape[:-1], -1)  # (…, out)


class Columns(nn.Linear):
    """A linear layer whose result is laid out by columns."""

    def forward(self, rows: Tensor) -> Tensor:
        """(…, out)."""
        return columns(rows, self.weight, self.bias)


class Product:
    """A product of the same weight (out, in) that many steps take while they learn; call it with rows (B, in).

    Gradients of weight and bias are reckoned in one product over all steps, after the last of them. One a step would
    write, and add, as many numbers as the weight has for a few rows: a tenth of the time of a training. Under autocast
    all are in its precision, and so is their sum.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._steps: list[tuple[Tensor, Tensor]] = []
        self._weights = _Handed.apply(self._steps, weight.to(multiplied_in(weight)), *([] if bias is None else [bias]))  # type: ignore[no-untyped-call]

    def __call__(self, rows: Tensor) -> Tensor:
        """(B, out), laid out by columns."""
        outputs: Tensor = _Taken.apply(self._steps, rows, *self._weights)  # type: ignore[no-untyped-call]
        return outputs


class _Handed(torch.autograd.Function):
    """Weights as they are handed to steps, which leave the slopes of their products and their rows."""

    @staticmethod
    def forward(ctx: Any, steps: list[tuple[Tensor, Tensor]], *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.steps, ctx.count = steps, len(weights)
        ctx.set_materialize_grads(False)
        return tuple(weight.view_as(weight) for weight in weights)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: None) -> tuple[Tensor | None, ...]:
        if not ctx.steps:
            return None, *[None] * ctx.count
        slopes, rows = (torch.cat(parts) for parts in zip(*ctx.steps, strict=True))  # (steps·B, out), (steps·B, in)
        ctx.steps.clear()
        return None, slopes.t() @ rows, *[slopes.sum(dim=0)][: ctx.count - 1]  # (out, in), (out,)


class _Taken(torch.autograd.Function):
    """A product of one step."""

    @staticmethod
    def forward(
        ctx: Any, steps: list[tuple[Tensor, Tensor]], rows: Tensor, weight: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        ctx.steps, ctx.has_bias = steps, bias is not None
        ctx.save_for_backward(rows, weight)
        return columns(rows, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        slope = grad_outputs[0].to(weight.dtype)  # (B, out)
        ctx.steps.append((slope, rows.to(weight.dtype)))
        return None, (slope @ weight).to(rows.dtype), None, *([None] if ctx.has_bias else [])  # (B, in)


def _plain(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    return lambda rows: columns(rows, weight, bias)  # (B, out)


class StepProducts(NamedTuple):
    """Products that each step of a recurrence takes."""

    beside: Callable[[Tensor], Tensor] | None = None  # of what stands beside the words
    entering: tuple[Callable[[Tensor], Tensor], ...] = ()  # of what each layer but the first reads
    recurrent: tuple[Callable[[Tensor], Tensor], ...] = ()  # of each layer's state


class StepInput(NamedTuple):
    """Previous words y_{j-1} of a step."""

    vectors: Tensor  # (B, E) with dropout
    gates: Tensor  # (B, gates·H) their part of the first layer's gates
    products: StepProducts = StepProducts()  # those of the recurrence, the same for all steps of a run


class Recurrence(nn.Module):
    """A stack of layers that reads word vectors (…, E) and, beside them, `beside` values that arise while it runs."""

    def __init__(self, architecture: Architecture, beside: int, dropout: float) -> None:
        super().__init__()
        self.cell: Cell = find("cell", architecture.cell)
        hidden, layers = architecture.hidden, architecture.layers
        self.stack = self.cell.layers(architecture.embedding, hidden, layers, dropout=dropout if layers > 1 else 0.0)
        self.beside = Columns(beside, self.cell.gates * hidden, bias=False) if beside else None
        self.dropout = nn.Dropout(dropout)

    def word_gates(self, embedded: Tensor) -> Tensor:
        """(…, gates·H) part of the word vectors in the first layer's gates, for all steps at once."""
        weight, _, bias, _ = self.stack.all_weights[0]
        return columns(embedded, weight, bias)

    def products(self) -> StepProducts:
        """Return the products of all steps of a run."""
        beside, weights = self.beside, self.stack.all_weights
        learns = torch.is_grad_enabled() and not weights[0][0].is_cuda  # not measured on a GPU
        kind = Product if learns else _plain
        return StepProducts(
            beside=Product(beside.weight, None) if learns and beside is not None else beside,
            entering=tuple(kind(weight, bias) for weight, _, bias, _ in weights[1:]),
            recurrent=tuple(kind(weight, bias) for _, weight, _, bias in weights),
        )

    def step(self, step_input: StepInput, beside: Tensor | None, state: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """Take one step of every layer, from what was made of the words before and from `beside` (B, …)."""
        entering, products = step_input.gates, step_input.products
        after: list[Layer] = []
        if products.beside is not None and beside is not None:
            entering = entering + products.beside(self.dropout(beside))
        for number, (recurrent, before) in enumerate(zip(products.recurrent, state, strict=True)):
            if number:
                entering = products.entering[number - 1](self.dropout(after[-1][0]))
            after.append(self.cell.step(entering, recurrent(before[0]), before))
        return tuple(after)

    def run(self, embedded: Tensor, state: tuple[Layer, ...]) -> Tensor:
        """(T, B, H) top layer over all steps (T, B, E); for what reads nothing beside the words."""
        first = tuple(torch.stack(tensors) for tensors in zip(*state, strict=True))  # (layers, B, H) each
        outputs: Tensor = self.stack(embedded, self.cell.packed(first))[0]
        return outputs
