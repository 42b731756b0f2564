"""The encoder-decoder: parts from the tables, put together."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.attention import Source
from features.models.decoder import WIRINGS
from features.models.encoder import ENCODERS
from features.models.settings import Architecture
from features.models.vocabulary import PADDING, UNKNOWN


class TokenScores(NamedTuple):
    """What a model says of a batch of targets, word by word; J counts `</s>`. Features are reductions of these.

    Attributes:
        log_probs: (B, J) natural log of p(t_j | s, t_<j), 0 on padding.
        unknown: (B, J) true where t_j is not in the vocabulary.
        attention: (B, J, S) row j is the attention of step j on the source, sentinels included; 0 on padding.
    """

    log_probs: Tensor
    unknown: Tensor
    attention: Tensor


class EncoderDecoder(nn.Module):
    """p(t|s) with an encoder and a decoder of the tables."""

    def __init__(self, architecture: Architecture, source_words: int, target_words: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(source_words, architecture.embedding, padding_idx=PADDING)
        self.target_embedding = nn.Embedding(target_words, architecture.embedding, padding_idx=PADDING)
        self.encoder = ENCODERS[architecture.encoder](architecture, dropout)
        self.decoder = WIRINGS[architecture.wiring](architecture, dropout)
        self.softmax = nn.Linear(architecture.hidden, target_words)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.uniform_(embedding.weight, -0.1, 0.1)
            with torch.no_grad():
                embedding.weight[PADDING].zero_()

    def encode(self, source: Tensor) -> Source:
        """Encode sources (B, S), which begin with `<s>`, end with `</s>`, and are padded behind."""
        mask = source != PADDING
        return self.decoder.attention.source(self.encoder(self.source_embedding(source), mask), mask)

    def decode(self, source: Source, target: Tensor) -> tuple[Tensor, Tensor]:
        """Run the decoder over targets (B, J+1), which begin with `<s>` and end with `</s>`.

        Returns:
            (J, B, V) logits of t_1 … t_J, and (J, B, S) rows of attention.
        """
        outputs, rows = self.decoder(self.target_embedding(target[:, :-1].t()), source)
        return self.softmax(outputs), rows

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """Sum of -log p over the words of the batch, `</s>` included, padding not."""
        logits, _ = self.decode(self.encode(source), target)
        wanted = target[:, 1:].t().reshape(-1)
        return nn.functional.cross_entropy(logits.flatten(0, 1), wanted, ignore_index=PADDING, reduction="sum")

    @torch.inference_mode()
    def score(self, source: Source, target: Tensor) -> TokenScores:
        """Score targets (B, J+1) against encoded sources with as many rows."""
        logits, rows = self.decode(source, target)
        wanted = target[:, 1:].t()  # (J, B)
        real = wanted != PADDING
        chosen = logits.gather(-1, wanted.unsqueeze(-1)).squeeze(-1)
        log_probs = (chosen - logits.logsumexp(dim=-1)) * real
        return TokenScores(log_probs.t(), (wanted == UNKNOWN).t(), (rows * real.unsqueeze(-1)).transpose(0, 1))
