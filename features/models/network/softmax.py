"""The output softmax and its loss, in blocks of rows, so that the logits of a whole batch are never in memory.

On a CPU this is also faster: a block of logits stays in the cache from the product to the gradient.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from features.arrays import Integers
from features.models.device import on_device
from features.models.network.cells import multiplied_in, product
from features.models.network.lexicon import Lexical, mix, mixed_log_probs, mixed_with_all
from features.models.vocabulary import PADDING

BLOCK = 256
"""Number of rows of logits in memory at once."""


class Softmax(nn.Linear):
    """p(word | output): a linear layer from H to the V words of the vocabulary, and the softmax over them."""

    def project(self, outputs: Tensor) -> Tensor:
        """Return the input (…, H) of the linear layer: the outputs themselves."""
        return outputs

    def loss(
        self, outputs: Tensor, words: Tensor, smoothing: float = 0.0, lexical: Lexical | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the loss and the sum of -log p over all rows (…, H), except rows whose word (…) is padding.

        Both are (). The sum has no gradient. With label smoothing, the loss spreads `smoothing` of the probability
        evenly over all words (Szegedy et al. 2016). Without it both values are equal. `lexical` has all rows,
        flattened. Under autocast, products have autocast's precision, and everything else has the precision of the
        weights.
        """
        real, precision = _real(words), multiplied_in(self.weight)
        rows = self.project(outputs.flatten(0, -2)[real]).to(self.weight.dtype)  # (N, H)
        with torch.autocast(rows.device.type, enabled=False):
            known = lexical.rows(real) if lexical else ()
            wanted = words.flatten()[real]  # (N,)
            losses: tuple[Tensor, Tensor] = _Loss.apply(  # type: ignore[no-untyped-call]
                rows, self.weight, self.bias, precision, wanted, smoothing, *known
            )
            return losses

    def divergence(self, outputs: Tensor, others: Tensor, words: Tensor) -> Tensor:
        """Return KL(p||q) + KL(q||p) in nats, summed over all rows except rows whose word (…) is padding.

        p is the distribution at a row of `outputs` (…, H), q at a row of `others`. Both receive gradients. The result
        is twice eq. 4 of Liang et al. 2021. It is computed in the precision of the weights even under autocast, since
        it subtracts nearly equal values.
        """
        real = _real(words)
        pairs = [side.flatten(0, -2)[real].to(self.weight.dtype) for side in (outputs, others)]  # (N, H) both
        with torch.autocast(outputs.device.type, enabled=False):
            first, second = (self.project(rows) for rows in pairs)
            divergence: Tensor = _Divergence.apply(first, second, self.weight, self.bias)  # type: ignore[no-untyped-call]
            return divergence

    def log_probs(self, outputs: Tensor, words: Tensor, lexical: Lexical | None = None) -> Tensor:
        """Return log p of words (…) at outputs (…, H), in nats. `lexical` has all rows, flattened."""
        rows = np.arange(words.numel())  # (N,)
        return self.chosen(outputs.flatten(0, -2), rows, words.flatten(), lexical).view(words.shape)  # (…)

    def chosen(self, outputs: Tensor, rows: Integers, words: Tensor, lexical: Lexical | None = None) -> Tensor:
        """Return log p(words[m]) at row rows[m] of the outputs (N, H), (M,) in nats.

        `rows` are in ascending order. A row may have several words.
        """
        parts = []
        for block in _blocks(len(outputs)):
            first, last = np.searchsorted(rows, (block.start, block.stop))
            logits = product(self.weight, self.project(outputs[block]), self.bias)  # (V, N)
            known = lexical.columns(block) if lexical else None
            if known and not known.mixes:
                logits.scatter_add_(0, known.words, known.values)  # (V, N)
            columns = on_device(rows[first:last] - block.start, words.device)  # (M,)
            at_words = logits[words[first:last], columns]  # (M,)
            highest = logits.amax(dim=0)  # (N,)
            log_norm = logits.sub_(highest).exp_().sum(dim=0).log_() + highest  # (N,), twice as fast as logsumexp
            log_probs = at_words - log_norm[columns]  # (M,)
            if known and known.mixes:
                log_probs = mixed_log_probs(known, columns, words[first:last], log_probs)
            parts.append(log_probs)
        return torch.cat(parts)  # (M,)

    def all_log_probs(self, outputs: Tensor, lexical: Lexical | None) -> Tensor:
        """Return log p of every word at outputs (N, H), (N, V) in nats, laid out in memory by rows."""
        logits = torch.mm(self.project(outputs).to(self.weight.dtype), self.weight.t()).to(outputs.dtype)  # (N, V)
        if self.bias is not None:
            logits.add_(self.bias)
        if lexical is None:
            return logits.log_softmax(dim=1)
        if lexical.mixes:
            return mixed_with_all(lexical, logits.log_softmax(dim=1))
        return logits.scatter_add_(1, lexical.words, lexical.values).log_softmax(dim=1)  # (N, V)


class TiedSoftmax(Softmax):
    """A softmax whose weights (V, E) are the vectors of the target words. Both are saved and loaded as one tensor.

    The outputs are first projected from H to E, without bias (Press & Wolf 2017, where H equals E).

    Training also changes the vector of padding, which starts at 0. As an input it is read only at steps after `</s>`,
    which are ignored. As a weight it learns that padding is improbable, like any word that never occurs.
    """

    def __init__(self, hidden: int, vectors: nn.Embedding, bias: bool) -> None:
        super().__init__(vectors.embedding_dim, vectors.num_embeddings, bias=bias)
        self.weight = vectors.weight
        self.projection = nn.Linear(hidden, vectors.embedding_dim, bias=False)

    def project(self, outputs: Tensor) -> Tensor:
        """Return the outputs (…, H) projected to (…, E)."""
        projected: Tensor = self.projection(outputs)
        return projected

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        del destination[f"{prefix}weight"]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        tied = {f"{prefix}weight": self.weight}
        super()._load_from_state_dict(state_dict | tied, prefix, *arguments)


class _Loss(torch.autograd.Function):
    """Loss and gradients in one pass over the logits."""

    @staticmethod
    def forward(
        ctx: Any,
        outputs: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        precision: torch.dtype,
        targets: Tensor,
        smoothing: float,
        *lexical: Any,
    ) -> tuple[Tensor, Tensor]:
        """Return the loss and the sum of -log p. Store the gradients if they are needed.

        `lexical` has the fields of a `Lexical`, or is empty.
        """
        learns, known = ctx.needs_input_grad[0], Lexical(*lexical) if lexical else None
        plain, spread = outputs.new_zeros(()), outputs.new_zeros(())
        gradients = [torch.empty_like(outputs), torch.zeros_like(weight)] if learns else []
        gradients += [torch.zeros_like(each) for each in (bias, *lexical[:1]) if each is not None and learns]
        lowered = weight.to(precision)
        for block in _blocks(len(outputs)):
            logits = product(lowered, outputs[block], bias)  # (V, N)
            part = _measure(logits, targets[None, block], smoothing, learns, known.columns(block) if known else None)
            plain += part.plain
            spread += part.spread
            if learns:
                _add_gradients(gradients[0][block], gradients[1], part.slope, lowered, outputs[block])
                if bias is not None:
                    gradients[2] += part.slope.sum(dim=1)  # (V,)
                if known:
                    gradients[-1][block] = part.of_values.t()  # (N, U)
        ctx.has_bias, ctx.lexical = bias is not None, len(lexical)
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(plain)
        return (1 - smoothing) * plain + smoothing * spread, plain

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the stored gradients."""
        outputs, weight, *others = (gradient * grad_outputs[0] for gradient in ctx.saved_tensors)
        bias, values = others[0] if ctx.has_bias else None, others[-1:] if ctx.lexical else []
        return outputs, weight, bias, None, None, None, *values, *[None] * (ctx.lexical - 1)


class _Part(NamedTuple):
    """Results of a block of rows."""

    plain: Tensor  # () sum of -log p of the target words
    spread: Tensor  # () sum over rows of the mean of -log p of all words, only valid with label smoothing
    slope: Tensor  # (V, N) gradient of the loss with respect to the logits, only valid if it is needed
    of_values: Tensor  # (U, N) gradient with respect to the lexicon values, empty without a lexicon


def _measure(logits: Tensor, words: Tensor, smoothing: float, learns: bool, lexical: Lexical | None) -> _Part:
    """Return loss and gradients of a block, from logits (V, N), which are overwritten, and words (1, N).

    `lexical` is (U, N). The gradients are meaningful only if `learns`.
    """
    if lexical and not lexical.mixes:
        logits.scatter_add_(0, lexical.words, lexical.values)  # (V, N)
    highest = logits.amax(dim=0, keepdim=True)  # (1, N)
    at_words, mean = logits.gather(0, words).sum(), logits.mean(dim=0).sum() if smoothing else 0  # () both
    known = logits.gather(0, lexical.words) - highest if lexical and lexical.mixes else None  # (U, N)
    # `slope` reuses the memory of the logits: first exp(logit - highest), then p, then the gradient.
    slope = logits.sub_(highest).exp_()
    norm = slope.sum(dim=0, keepdim=True)  # (1, N)
    log_norm = norm.log().sum() + highest.sum()  # ()
    mixed = mix(lexical, known - norm.log(), words, smoothing, len(slope)) if lexical and known is not None else None
    if mixed:
        at_words, mean = at_words + mixed.at_words, mean + mixed.mean
    if learns:
        slope.div_(norm)
        if mixed:
            slope.mul_(mixed.softmax_fraction)
        slope.scatter_add_(0, words, slope.new_full(words.shape, smoothing - 1))  # (V, N)
        if smoothing:
            slope -= smoothing / len(slope)
        if mixed and lexical:
            slope.scatter_add_(0, lexical.words, mixed.lexicon_fractions)  # (V, N)
    of_values = mixed.slope if mixed else slope.gather(0, lexical.words) if lexical else slope[:0]  # (U, N)
    return _Part(plain=log_norm - at_words, spread=log_norm - mean, slope=slope, of_values=of_values)


class _Divergence(torch.autograd.Function):
    """Symmetric divergence and its gradients in one pass over the logits of both sides."""

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, others: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Return KL(p||q) + KL(q||p) and store the gradients."""
        total, sides = outputs.new_zeros(()), (outputs, others)
        gradients = [torch.empty_like(outputs), torch.empty_like(others), torch.zeros_like(weight)]
        if bias is not None:
            gradients.append(torch.zeros_like(bias))
        for block in _blocks(len(outputs)):
            log_p, log_q = (product(weight, side[block], bias).log_softmax(dim=0) for side in sides)  # (V, N) both
            log_ratio = log_p - log_q  # (V, N)
            p, q = log_p.exp_(), log_q.exp_()
            difference = p - q
            total += (difference * log_ratio).sum()
            slopes = (
                p.mul_(log_ratio - (p * log_ratio).sum(dim=0)).add_(difference),  # (V, N)
                q.mul_((q * log_ratio).sum(dim=0) - log_ratio).sub_(difference),  # (V, N)
            )
            for slope, side, gradient in zip(slopes, sides, gradients, strict=False):
                _add_gradients(gradient[block], gradients[2], slope, weight, side[block])
                if bias is not None:
                    gradients[3] += slope.sum(dim=1)  # (V,)
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the stored gradients."""
        outputs, others, weight, *bias = (gradient * grad_outputs[0] for gradient in ctx.saved_tensors)
        return outputs, others, weight, bias[0] if bias else None


def _add_gradients(of_rows: Tensor, of_weight: Tensor, slope: Tensor, weight: Tensor, rows: Tensor) -> None:
    """Write the gradient of rows (N, H), and add the gradient of the weight (V, H) to `of_weight`.

    `slope` (V, N) is the gradient with respect to the logits. Products have the precision of the weight.
    """
    slope, rows = slope.to(weight.dtype), rows.to(weight.dtype)
    if of_weight.dtype == weight.dtype:
        of_weight.addmm_(slope, rows)  # (V, H) without a temporary matrix
    else:
        of_weight += slope @ rows  # (V, H)
    of_rows.copy_(slope.t() @ weight)  # (N, H)


def _real(words: Tensor) -> Tensor:
    """Return the indices (N,) of the flattened words (…) that are not padding.

    A boolean mask would have to be counted at each use.
    """
    return (words.flatten() != PADDING).nonzero().squeeze(1)  # (N,)


def _blocks(rows: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, rows, BLOCK)]
