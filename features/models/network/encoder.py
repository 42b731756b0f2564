"""Encoders: from source words to annotations."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from features.models.network.cells import Cell, Layer, columns, full_precision, product
from features.models.settings import Architecture
from features.models.tables import find

Encoded = tuple[Tensor, tuple[Layer, ...]]
"""Result of an encoder: annotations and final states.

Annotations (B, S, K) cover all positions of a batch, `<s>` and `</s>` included, and are 0 on padding. The final states
depend on the encoder:

* unidirectional: the state of each layer
* bidirectional: only the top layer's backward output at `<s>`
* transformer: empty
"""


class FirstStates(nn.Module):
    """First states of the encoder layers: zeros, or a learned vector for each layer, direction and state tensor.

    Cohn et al. 2016 learn them (eq. 1, footnote 1). Presets of other papers use zeros.
    """

    def __init__(self, architecture: Architecture, directions: int) -> None:
        super().__init__()
        self.cell: Cell = find("cell", architecture.cell)
        size = (self.cell.num_states, architecture.encoder_layers * directions, architecture.hidden_size)
        self.vectors = nn.Parameter(torch.zeros(size)) if architecture.initial_state == "learned" else None

    def forward(self, layers: slice, batch: int) -> Tensor | Layer | None:
        """Return the first states of some layers for torch's module, tensors (layers, B, H), or None for zeros."""
        if self.vectors is None:
            return None
        states = self.vectors[:, layers, None].expand(-1, -1, batch, -1)  # (states, layers, B, H)
        return self.cell.to_torch(states.contiguous().unbind(0))  # (layers, B, H) each


class BidirectionalEncoder(nn.Module):
    """Recurrent layers in both directions: e_i = [forward_i; backward_i] (Bahdanau et al. 2015).

    The backward layers read each sentence reversed within its own length. Padding comes last in both directions and
    changes nothing.
    """

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        self.cell: Cell = find("cell", architecture.cell)
        layers, hidden = self.cell.layers, architecture.hidden_size
        sizes = [architecture.embedding_size] + [2 * hidden] * (architecture.encoder_layers - 1)
        self.forwards = nn.ModuleList(layers(size, hidden, batch_first=True) for size in sizes)
        self.backwards = nn.ModuleList(layers(size, hidden, batch_first=True) for size in sizes)
        self.first = FirstStates(architecture, directions=2)
        self.shares_prefixes = architecture.encoder_layers == 1
        self.dropout = nn.Dropout(dropout)

    def encode_tree(self, embedded: Tensor, levels: Sequence[tuple[Tensor, Tensor]], backwards: bool) -> Tensor:
        """Return the outputs (N, H) of one direction of a single layer at the nodes of a prefix tree.

        Args:
            embedded: (W, E) vectors of words.
            levels: for each level, the nodes of the level before that its nodes continue, and their last words, as rows
                of `embedded`, (n,) each.
            backwards: whether the backward layer reads the tree, which then has the reversed sentences.
        """
        layers = self.backwards if backwards else self.forwards
        enter, recur, *biases = layers[0].all_weights[0]  # type: ignore[index]
        gates = product(enter, embedded, biases[0])  # (gates·H, W)
        start = self.first(slice(int(backwards), int(backwards) + 1), 1)
        tensors = start if isinstance(start, tuple) else (start,) * (start is not None)
        zeros = (embedded.new_zeros(1, len(recur[0])),) * self.cell.num_states
        state = tuple(each[0] for each in tensors) or zeros  # (1, H) each
        outputs, done = embedded.new_empty(sum(len(words) for _, words in levels), len(recur[0])), 0  # (N, H)
        for parents, words in levels:
            state = tuple(each.index_select(0, parents) for each in state)  # (n, H)
            entering = gates.index_select(1, words).t()  # (n, gates·H)
            state = self.cell.step(entering, columns(state[0], recur, biases[1]), state)
            outputs[done : done + len(words)] = state[0]
            done += len(words)
        return outputs

    def forward(self, embedded: Tensor, mask: Tensor) -> Encoded:
        """Encode word vectors (B, S, E); `mask` (B, S) is false on padding."""
        order = _reversal(mask, with_boundaries=True)  # (B, S)
        states, batch = embedded, len(embedded)
        for layer, (forwards, backwards) in enumerate(zip(self.forwards, self.backwards, strict=True)):
            below = self.dropout(states)
            left, right = (self.first(slice(index, index + 1), batch) for index in (2 * layer, 2 * layer + 1))
            with full_precision(embedded.device):
                ahead = forwards(below, left)[0]  # (B, S, H)
                back = _take(backwards(_take(below, order), right)[0], order)  # (B, S, H)
            states = torch.cat([ahead, back], dim=-1) * mask.unsqueeze(-1)  # (B, S, 2H)
        return states, ((back[:, 0],),)  # (B, S, 2H), (B, H)


class UnidirectionalEncoder(nn.Module):
    """Stacked recurrent layers that read the source left to right, or reversed (Sutskever et al. 2014; Luong et al.).

    Only the words are reversed: `<s>` and `</s>` keep their positions. The annotations are returned in the original
    order.
    """

    shares_prefixes = False

    def __init__(self, architecture: Architecture, dropout: float) -> None:
        super().__init__()
        self.cell: Cell = find("cell", architecture.cell)
        layers = architecture.encoder_layers
        between = dropout if layers > 1 else 0.0
        self.stack = self.cell.layers(
            architecture.embedding_size, architecture.hidden_size, layers, dropout=between, batch_first=True
        )
        self.first = FirstStates(architecture, directions=1)
        self.reverse = architecture.reverse_source
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded: Tensor, mask: Tensor) -> Encoded:
        """Encode word vectors (B, S, E); `mask` (B, S) is false on padding."""
        order = _reversal(mask, with_boundaries=False)  # (B, S)
        below = self.dropout(_take(embedded, order) if self.reverse else embedded)  # (B, S, E)
        lengths = mask.sum(dim=1).cpu()  # (B,)
        packed = pack_padded_sequence(below, lengths, batch_first=True, enforce_sorted=False)
        with full_precision(embedded.device):
            outputs, ends = self.stack(packed, self.first(slice(None), len(mask)))
        states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=mask.shape[1])  # (B, S, H)
        tensors = ends if self.cell.num_states > 1 else (ends,)
        last = tuple(zip(*(tensor.unbind(0) for tensor in tensors), strict=True))  # for each layer, a tuple of (B, H)
        return _take(states, order) if self.reverse else states, last


def _reversal(mask: Tensor, with_boundaries: bool) -> Tensor:
    """Return positions (B, S) that reverse each sentence and leave padding in place.

    With `with_boundaries`, `<s>` and `</s>` are also reversed. Otherwise they keep their positions.
    """
    positions = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)  # (B, S)
    lengths = mask.sum(dim=1, keepdim=True)  # (B, 1)
    is_reversed = mask if with_boundaries else mask & (positions > 0) & (positions < lengths - 1)
    return torch.where(is_reversed, lengths - 1 - positions, positions)  # (B, S)


def _take(values: Tensor, order: Tensor) -> Tensor:
    return values.gather(1, order.unsqueeze(-1).expand(-1, -1, values.shape[-1]))  # (B, S, …)
