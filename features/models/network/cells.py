"""Recurrent layers: whole sequences with torch's fused kernels, or single steps with the same weights."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from features.models.settings import Architecture
from features.models.tables import find

Layer = tuple[Tensor, ...]
"""State of a layer: its output (B, H), then the other tensors of the cell, if any."""


def tanh(values: Tensor) -> Tensor:
    """Return tanh, on a CPU computed as 2 sigmoid(2x) - 1 in a third of the time of torch's tanh.

    On a CPU, bfloat16 values (from autocast) are converted to float32 first. The subtraction would lose precision:
    bfloat16 values near 0.5 are 0.004 apart.
    """
    if values.is_cuda:
        return torch.tanh(values)
    values = values.float() if values.dtype == torch.bfloat16 else values
    return torch.sigmoid(values + values).mul(2).sub(1)


class Cell(NamedTuple):
    """A recurrent cell.

    `step` takes the input's part (B, gates·H) and the state's part (B, gates·H) of the gates, and the state. It returns
    the next state.
    """

    gates: int  # number of blocks of H rows in the weights
    num_states: int  # number of tensors in the state of a layer
    layers: type[nn.RNNBase]  # torch module of a stack of layers
    step: Callable[[Tensor, Tensor, Layer], Layer]
    run: Callable[..., Any]  # fused kernel of a stack of layers

    def to_torch(self, state: Layer) -> Tensor | Layer:
        """Return the state as torch's module expects it: a tuple, or the tensor itself if the cell has only one."""
        return state if self.num_states > 1 else state[0]


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


LSTM = Cell(gates=4, num_states=2, layers=nn.LSTM, step=_lstm, run=torch.lstm)
"""LSTM (Hochreiter & Schmidhuber 1997)."""
GRU = Cell(gates=3, num_states=1, layers=nn.GRU, step=_gru, run=torch.gru)
"""GRU (Cho et al. 2014) in torch's form: the reset gate is applied after the recurrent product."""
RNN = Cell(gates=1, num_states=1, layers=nn.RNN, step=_rnn, run=torch.rnn_tanh)
"""Simple recurrent network (Elman 1990)."""


def multiplied_in(weight: Tensor) -> torch.dtype:
    """Return the precision in which a weight is multiplied: that of autocast, or its own if autocast is off."""
    device_type = weight.device.type
    return torch.get_autocast_dtype(device_type) if torch.is_autocast_enabled(device_type) else weight.dtype


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which torch's recurrent layers, and the products of their first states, are in float32.

    It has an effect on a GPU only. Autocast would run the layers there in float16, even if its precision is bfloat16,
    and small gradients would become 0.
    """
    return torch.autocast(device.type, enabled=False) if device.type == "cuda" else nullcontext()


def product(weight: Tensor, rows: Tensor, bias: Tensor | None) -> Tensor:
    """Return W xᵀ + b, (out, N), for rows x (N, in).

    The product is computed in the precision of W, which may be lower than that of the rows. On a CPU it is up to twice
    as fast as x Wᵀ.
    """
    wide = torch.mm(weight, rows.t().to(weight.dtype)).to(rows.dtype)  # (out, N)
    return wide if bias is None else wide.add_(bias.unsqueeze(1))  # (out, N)


def columns(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return W x + b, (…, out), for rows x (…, in), like `functional.linear` but laid out in memory by columns.

    Each gate of a cell is then a contiguous block of memory.
    """
    return product(weight, rows.flatten(0, -2), bias).t().view(*rows.shape[:-1], -1)  # (…, out)


class Columns(nn.Linear):
    """A linear layer whose output is laid out in memory by columns."""

    def forward(self, rows: Tensor) -> Tensor:
        """Return outputs (…, out)."""
        return columns(rows, self.weight, self.bias)


class Product:
    """A product of one weight (out, in) that many training steps use. Call it with rows (B, in).

    The gradients of weight and bias are computed in one product over all steps, at the end of the backward pass. A
    product at each step would write and add a matrix of the weight's size for only a few rows, which takes a tenth of
    the training time. Under autocast all products, and the sum, have autocast's precision.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._steps: list[tuple[Tensor, Tensor]] = []
        self._weights = _SharedWeights.apply(
            self._steps, weight.to(multiplied_in(weight)), *([] if bias is None else [bias])
        )  # type: ignore[no-untyped-call]

    def __call__(self, rows: Tensor) -> Tensor:
        """Return outputs (B, out), laid out in memory by columns."""
        outputs: Tensor = _StepProduct.apply(self._steps, rows, *self._weights)  # type: ignore[no-untyped-call]
        return outputs


class _SharedWeights(torch.autograd.Function):
    """Passes weights to the steps, and computes their gradients from the tensors that the steps append."""

    @staticmethod
    def forward(ctx: Any, steps: list[tuple[Tensor, Tensor]], *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.steps, ctx.count = steps, len(weights)
        # `_StepProduct` returns no gradients for the weights: do not fill in zeros.
        ctx.set_materialize_grads(False)
        return tuple(weight.view_as(weight) for weight in weights)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: None) -> tuple[Tensor | None, ...]:
        if not ctx.steps:
            return None, *[None] * ctx.count
        slopes, rows = (torch.cat(parts) for parts in zip(*ctx.steps, strict=True))  # (steps·B, out), (steps·B, in)
        ctx.steps.clear()
        # The slice drops the gradient of the bias if there is no bias.
        return None, slopes.t() @ rows, *[slopes.sum(dim=0)][: ctx.count - 1]  # (out, in), (out,)


class _StepProduct(torch.autograd.Function):
    """Product of one step. Its backward pass appends the output gradient and the rows to `steps`."""

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
    """Products with the weights of a recurrence, the same at each step."""

    additional: Callable[[Tensor], Tensor] | None = None  # of the additional input
    entering: tuple[Callable[[Tensor], Tensor], ...] = ()  # of the inputs of all layers except the first
    recurrent: tuple[Callable[[Tensor], Tensor], ...] = ()  # of the states of all layers


class StepInput(NamedTuple):
    """Previous words y_{j-1}, as the input of a step."""

    vectors: Tensor  # (B, E) after dropout
    gates: Tensor  # (B, gates·H) their part of the first layer's gates
    products: StepProducts = StepProducts()  # of the recurrence, shared by all steps of a run


class Recurrence(nn.Module):
    """A stack of recurrent layers that reads word vectors (…, E) and optionally an additional input.

    The additional input is a context or a feed, which becomes known only while the recurrence runs. Its size is
    `additional_size`, 0 if it is not used.
    """

    def __init__(self, architecture: Architecture, additional_size: int, dropout: float, layers: int) -> None:
        super().__init__()
        self.cell: Cell = find("cell", architecture.cell)
        hidden = architecture.hidden_size
        self.stack = self.cell.layers(
            architecture.embedding_size, hidden, layers, dropout=dropout if layers > 1 else 0.0
        )
        self.beside = Columns(additional_size, self.cell.gates * hidden, bias=False) if additional_size else None
        self.dropout = nn.Dropout(dropout)

    def word_gates(self, embedded: Tensor) -> Tensor:
        """Return the part (…, gates·H) of the word vectors in the first layer's gates, for all steps at once."""
        weight, _, bias, _ = self.stack.all_weights[0]
        return columns(embedded, weight, bias)

    def products(self) -> StepProducts:
        """Return the products that all steps of a run share."""
        beside, weights = self.beside, self.stack.all_weights
        learns = torch.is_grad_enabled() and not weights[0][0].is_cuda  # not measured on a GPU
        kind = Product if learns else _plain
        return StepProducts(
            additional=Product(beside.weight, None) if learns and beside is not None else beside,
            entering=tuple(kind(weight, bias) for weight, _, bias, _ in weights[1:]),
            recurrent=tuple(kind(weight, bias) for _, weight, _, bias in weights),
        )

    def step(self, step_input: StepInput, additional: Tensor | None, state: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """Return the next state of every layer, from the previous words and the additional input (B, …)."""
        entering, products = step_input.gates, step_input.products
        after: list[Layer] = []
        if products.additional is not None and additional is not None:
            entering = entering + products.additional(self.dropout(additional))
        for number, (recurrent, before) in enumerate(zip(products.recurrent, state, strict=True)):
            if number:
                entering = products.entering[number - 1](self.dropout(after[-1][0]))
            after.append(self.cell.step(entering, recurrent(before[0]), before))
        return tuple(after)

    def run(self, embedded: Tensor, state: tuple[Layer, ...]) -> Tensor:
        """Return the top layer's outputs (T, B, H) over all steps (T, B, E), only without additional input."""
        first = tuple(torch.stack(tensors) for tensors in zip(*state, strict=True))  # (layers, B, H) each
        with full_precision(embedded.device):
            outputs: Tensor = self.stack(embedded, self.cell.to_torch(first))[0]
        return outputs
