"""Preparation of models for many candidates per source, and for translation: fewer products, or in lower precision."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from features.models.folder import Model
from features.models.network.cells import Columns, Recurrence
from features.models.network.model import EncoderDecoder
from features.models.network.transformer import Dense


class Fused(nn.Module):
    """Rest of a linear layer that read the context first, after its context weights were applied to annotations.

    The input now begins with the products of all such layers, `total` values. The slice `own` holds those of this
    layer.
    """

    def __init__(self, layer: nn.Linear, width: int, own: slice, total: int) -> None:
        super().__init__()
        self.own, self.total = own, total
        rest = layer.weight.detach()[:, width:]  # (out, in - width)
        self.rest = nn.Parameter(rest) if layer.in_features > width else None
        self.bias = layer.bias

    def forward(self, rows: Tensor) -> Tensor:
        """Return the outputs (…, out) of the original layer."""
        if self.rest is None:
            return rows[..., self.own]  # (…, out)
        return rows[..., self.own] + functional.linear(rows[..., self.total :], self.rest, self.bias)  # (…, out)


def prepare(model: Model, precision: str, stepwise: bool) -> None:
    """Prepare a model for many candidates per source, or for translation.

    Args:
        model: the model. Its network is changed in place.
        precision: precision of products, `fp32` or `bf16`.
        stepwise: whether the decoder will only take single steps. Otherwise it runs over whole candidates.
    """
    if stepwise:
        fuse_context_weights(model.network)
    if precision == "bf16":
        lower(model.network, stepwise)


def fuse_context_weights(network: EncoderDecoder) -> None:
    """Multiply the weights with annotations instead of contexts: W sum_i a_i e_i = sum_i a_i W e_i.

    The network is changed in place. This is faster if many hypotheses share a source. With granularity `fine`, where
    each dimension has its own attention weights, it is not possible, and nothing is changed.
    """
    decoder = network.decoder
    layers = [decoder.get_submodule(name) for name in decoder.readers]
    if not layers or decoder.attention.fine:
        return
    width, total = network.annotation, sum(layer.out_features for layer in layers)
    values = nn.Linear(width, total, bias=False, device="meta")
    values.weight = nn.Parameter(torch.cat([layer.weight.detach()[:, :width] for layer in layers]))  # (total, width)
    start = 0
    for name, layer in zip(decoder.readers, layers, strict=True):
        end = start + layer.out_features
        decoder.set_submodule(name, Fused(layer, width, slice(start, end), total))
        start = end
    decoder.values = values


def lower(network: EncoderDecoder, stepwise: bool) -> None:
    """Multiply in bfloat16 in the decoder layers and the softmax, but add, normalize and keep states in float32.

    The network is changed in place. If the decoder will only take single steps (`stepwise`), its recurrent layers can
    also be lowered. Torch's fused kernels require a single precision.
    """
    parts = list(network.decoder.modules())
    lowered = [part.weight for part in parts if isinstance(part, Columns | Dense)]
    for part in parts if stepwise else ():
        if isinstance(part, Recurrence):
            lowered += [weight for name, weight in part.stack.named_parameters() if name.startswith("weight")]
    for weight in lowered:
        weight.data = weight.data.bfloat16()
    network.softmax.weight = nn.Parameter(network.softmax.weight.detach().bfloat16())  # word vectors stay as they are
