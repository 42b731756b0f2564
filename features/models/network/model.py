"""The encoder-decoder, assembled from the parts in the tables."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from features.models.network.cells import Layer
from features.models.network.lexicon import Lexical, Lexicon
from features.models.network.softmax import Softmax, TiedSoftmax
from features.models.network.source import Source
from features.models.settings import Architecture
from features.models.tables import find
from features.models.vocabulary import BEGIN, END, PADDING, UNKNOWN


class TokenScores(NamedTuple):
    """Scores of a batch of targets, token by token. J counts `</s>`. Features are reductions of these."""

    log_probs: Tensor  # (B, J) natural log of p(t_j | s, t_<j), 0 on padding
    unknown: Tensor  # (B, J) true if t_j is not in the vocabulary
    attention: Tensor  # (B, J, S) row j is the attention of step j, also on `<s>` and `</s>`, 0 on padding
    source_mask: Tensor  # (B, S) true on source words


class Objective(NamedTuple):
    """Training objective of a batch of sentence pairs."""

    loss: Tensor  # sum of -log p over the target tokens, with label smoothing and R-drop if set
    plain: Tensor  # sum of -log p without label smoothing and R-drop, and without gradient
    bonus: Tensor  # sum of the objectives that are added to the log-likelihood
    rows: Tensor  # (J, B, S) attention, 0 on padding; with R-drop (J, 2B, S), second passes last


class Contextualization(nn.Module):
    """Masks on the word vectors of both sides, computed from the whole source sentence (Choi et al. 2018, 4.3).

    c_x = 1/I sum_i NN(x_i). The masks are sigmoid(W_x c_x + b_x) and sigmoid(W_y c_x + b_y). The paper does not specify
    NN. Here it is one tanh layer: a linear layer after it could be merged into W_x and W_y.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        size = architecture.embedding_size
        self.word = nn.Linear(size, size)
        self.source = nn.Linear(size, size)
        self.target = nn.Linear(size, size)

    def forward(self, embedded: Tensor, source_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return masks (B, E) for source and target, from vectors (B, S, E). `source_mask` (B, S) is true on words."""
        total = (torch.tanh(self.word(embedded)) * source_mask.unsqueeze(-1)).sum(dim=1)  # (B, E)
        mean = total / source_mask.sum(dim=1, keepdim=True).clamp(min=1)  # (B, E)
        return torch.sigmoid(self.source(mean)), torch.sigmoid(self.target(mean))


class WordDropout(nn.Module):
    """Dropout of whole word vectors in training: each is set to 0 with probability p, or divided by 1 - p.

    Each token is drawn independently (Sennrich & Zhang 2019). Gal & Ghahramani 2016 draw once for all tokens of a word.
    `<s>` and `</s>` are never changed.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, vectors: Tensor, words: Tensor) -> Tensor:
        """Return the vectors (…, E) of words (…) after dropout."""
        if not self.training or not self.probability:
            return vectors
        unmasked = torch.rand(words.shape, device=words.device) >= self.probability  # (…)
        factors = torch.where((words == BEGIN) | (words == END), 1.0, unmasked / (1 - self.probability))  # (…)
        return vectors * factors.unsqueeze(-1)  # (…, E)


class EncoderDecoder(nn.Module):
    """p(t|s): an encoder and a decoder from the tables. `source_size` and `target_size` are vocabulary sizes."""

    def __init__(
        self,
        architecture: Architecture,
        source_size: int,
        target_size: int,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, architecture.embedding_size, padding_idx=PADDING)
        self.target_embedding = nn.Embedding(target_size, architecture.embedding_size, padding_idx=PADDING)
        self.word_dropout = WordDropout(word_dropout)
        self.context = Contextualization(architecture) if architecture.contextual_embeddings else None
        self.encoder = find("encoder", architecture.encoder)(architecture, dropout)
        self.decoder = find("decoder", architecture.decoder)(architecture, dropout)
        self.softmax = (
            TiedSoftmax(architecture.hidden_size, self.target_embedding, bias=architecture.softmax_bias)
            if architecture.tied_softmax
            else Softmax(architecture.hidden_size, target_size, bias=architecture.softmax_bias)
        )
        kind = architecture.lexicon
        self.lexicon = Lexicon(source_size, mixes=kind == "mixture") if kind != "none" else None
        objectives = {name: find("objectives", name)(architecture) for name in architecture.objectives}
        self.objectives = nn.ModuleDict(objectives)
        self.attends_boundaries, self.annotation = architecture.attend_bos_eos, architecture.annotation
        for embedding in (self.source_embedding, self.target_embedding):
            self.decoder.draw_vectors(embedding.weight)
            with torch.no_grad():
                embedding.weight[PADDING].zero_()

    def encode(self, source: Tensor) -> Source:
        """Encode sources (B, S), which begin with `<s>`, end with `</s>`, and are padded at the end."""
        return self.annotated(source, *self._annotate(source, *_masks(source)))

    def annotated(
        self, source: Tensor, annotations: Tensor, last: tuple[Layer, ...], gate: tuple[Tensor, ...]
    ) -> Source:
        """Return the encoded sources (B, S) from the results of the encoder."""
        mask, source_mask = _masks(source)
        source_length = source_mask.sum(dim=1, keepdim=True)  # (B, 1)
        # (B, S). An empty source keeps `<s>` and `</s>`: a softmax over no position is NaN.
        open_to_attention = mask if self.attends_boundaries else torch.where(source_length > 0, source_mask, mask)
        bias = annotations.new_zeros(mask.shape).masked_fill(~open_to_attention, float("-inf"))  # (B, S)
        length = source_length.to(torch.promote_types(bias.dtype, torch.float32))  # bfloat16 is exact up to 256 only
        states, keys = self.decoder.values(annotations), self.decoder.keys(annotations, length)
        encoded = Source(states=states, keys=keys, bias=bias, source_length=length, last=last, gate=gate)
        return encoded._replace(lexicon=self.lexicon.entries(source)) if self.lexicon else encoded

    def fertility(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance (B, S) of the attention that words should get, by the model's global fertility."""
        annotations = self._annotate(source, *_masks(source))[0]
        expected: tuple[Tensor, Tensor] = self.objectives["fertility"].expected(annotations)  # type: ignore[operator]
        return expected

    def _annotate(
        self, source: Tensor, mask: Tensor, source_mask: Tensor
    ) -> tuple[Tensor, tuple[Layer, ...], tuple[Tensor, ...]]:
        """Return annotations, final states, and for a contextual model the mask (B, E) of target vectors."""
        embedded = self.word_dropout(self.source_embedding(source), source)  # (B, S, E)
        if self.context is None:
            return *self.encoder(embedded, mask), ()
        source_gate, target_gate = self.context(embedded, source_mask)
        return *self.encoder(embedded * source_gate.unsqueeze(1), mask), (target_gate,)  # source gate (B, 1, E)

    def embed(self, target: Tensor, source: Source) -> Tensor:
        """Return the vectors (…, B, E) of previous target words (…, B)."""
        embedded: Tensor = self.word_dropout(self.target_embedding(target), target)
        return embedded * source.gate[0] if source.gate else embedded

    def decode(self, source: Source, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return softmax inputs (J, B, H) and attention rows (J, B, S) at the steps of targets (B, J+1).

        Targets begin with `<s>` and end with `</s>`. The J steps predict t_1 … t_J. Rows are 0 if t_j is padding.
        """
        outputs, rows = self.decoder(self.embed(target[:, :-1].t(), source), source)  # (J, B, H), (J, B, S)
        return outputs, rows * (target[:, 1:].t() != PADDING).unsqueeze(-1)  # (J, B, H), (J, B, S)

    def lexical(self, source: Source, rows: Tensor) -> Lexical | None:
        """Return the lexicon values at steps with attention rows (B, S) or (J, B, S), or None without a lexicon."""
        return self.lexicon(source, rows) if self.lexicon else None

    def forward(self, source: Tensor, target: Tensor, smoothing: float = 0.0, r_drop: float = 0.0) -> Objective:
        """Return the training objective of sources (B, S) and targets (B, J+1).

        Args:
            source: (B, S) word indices.
            target: (B, J+1) word indices.
            smoothing: label smoothing.
            r_drop: alpha of R-drop (Liang et al. 2021, eq. 3-5). If it is not 0, each pair is passed twice with
                different dropout. Loss and bonus are sums over both passes, and `plain` is their mean. The loss also
                has alpha / 2 times the symmetric divergence of both passes at every target token.
        """
        if r_drop:
            source, target = source.repeat(2, 1), target.repeat(2, 1)  # (2B, S), (2B, J+1)
        encoded = self.encode(source)
        outputs, rows = self.decode(encoded, target)
        words = target[:, 1:].t()  # (J, B)
        loss, plain = self.softmax.loss(outputs, words, smoothing, self.lexical(encoded, rows))
        if r_drop:
            first, second = outputs.chunk(2, dim=1)  # (J, B, H) both
            loss = loss + r_drop / 2 * self.softmax.divergence(first, second, words[:, : first.shape[1]])
            plain = plain / 2
        bonus = sum((objective(encoded, rows).sum() for objective in self.objectives.values()), loss.new_zeros(()))
        return Objective(loss=loss, plain=plain, bonus=bonus, rows=rows)

    @torch.inference_mode()
    def score(self, source: Source, target: Tensor) -> TokenScores:
        """Score targets (B, J+1) with B encoded sources."""
        outputs, rows = self.decode(source, target)
        words = target[:, 1:].t()  # (J, B)
        lexical = self.lexical(source, rows)
        log_probs = (self.softmax.log_probs(outputs, words, lexical) * (words != PADDING)).t()  # (B, J)
        unknown, attention = (words == UNKNOWN).t(), rows.transpose(0, 1)  # (B, J), (B, J, S)
        return TokenScores(log_probs=log_probs, unknown=unknown, attention=attention, source_mask=source.source_mask)


def _masks(source: Tensor) -> tuple[Tensor, Tensor]:
    """Return two masks (B, S) of sources between `<s>` and `</s>`: true except on padding, and true on words only."""
    mask = source != PADDING
    positions = torch.arange(mask.shape[1], device=mask.device)  # (S,)
    return mask, (positions > 0) & (positions <= mask.sum(dim=1, keepdim=True) - 2)  # (B, S) both
