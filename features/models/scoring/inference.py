"""A network made ready to score: products done once a source instead of at every step, and fewer bits where asked."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.folder import Model
from features.models.network.cells import Columns, Recurrence
from features.models.network.model import EncoderDecoder
from features.models.network.transformer import Dense


class Folded(nn.Module):
    """What is left of a linear layer that read the context first, once the annotations were multiplied by its weights.

    Its input begins with the products of all such layers, `total` values, of which its own are those of `own`.
    """

    def __init__(self, layer: nn.Linear, width: int, own: slice, total: int) -> None:
        super().__init__()
        self.own, self.total = own, total
        self.rest = nn.Parameter(layer.weight.detach()[:, width:]) if layer.in_features > width else None
        self.bias = layer.bias

    def forward(self, rows: Tensor) -> Tensor:
        """(…, outputs) what the layer gave."""
        if self.rest is None:
            return rows[..., self.own]
        return rows[..., self.own] + functional.linear(rows[..., self.total :], self.rest, self.bias)


def prepare(model: Model, precision: str) -> None:
    """Make a model ready for many candidates of each source, or for translating, in `fp32` or `bf16`."""
    forward = model.config.direction == "forward"
    if forward:
        fold(model.network)
    if precision == "bf16":
        lower(model.network, stepwise=forward)


def fold(network: EncoderDecoder) -> None:
    """Multiply annotations instead of contexts from now on: W sum_i a_i e_i = sum_i a_i W e_i.

    This pays where many hypotheses share a source. Where each dimension has weights of its own it cannot be done.
    """
    decoder = network.decoder
    layers = [decoder.get_submodule(name) for name in decoder.readers]
    if not layers or decoder.attention.fine:
        return
    width, total = network.annotation, sum(layer.out_features for layer in layers)
    values = nn.Linear(width, total, bias=False, device="meta")
    values.weight = nn.Parameter(torch.cat([layer.weight.detach()[:, :width] for layer in layers]))
    start = 0
    for name, layer in zip(decoder.readers, layers, strict=True):
        end = start + layer.out_features
        decoder.set_submodule(name, Folded(layer, width, slice(start, end), total))
        start = end
    decoder.values = values


def lower(network: EncoderDecoder, stepwise: bool) -> None:
    """Multiply in bfloat16, and add, normalize and keep states in float32, in the decoder's layers and the softmax.

    `stepwise` says that the decoder will take single steps only; torch's fused kernels want all in one precision.
    """
    parts = list(network.decoder.modules())
    lowered = [part.weight for part in parts if isinstance(part, Columns | Dense)]
    for part in parts if stepwise else ():
        if isinstance(part, Recurrence):
            lowered += [weight for name, weight in part.stack.named_parameters() if name.startswith("weight")]
    for weight in lowered:
        weight.data = weight.data.bfloat16()
    network.softmax.weight = nn.Parameter(network.softmax.weight.detach().bfloat16())  # word vectors stay as they are
