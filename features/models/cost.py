"""Size of the computations of networks, and the time of trainings. This module does not need torch.

The constants are seconds of one core of an AMD EPYC without bfloat16 products.
"""

import math
from dataclasses import dataclass, replace

from features.models.config import DEV_FOLDS
from features.models.settings import NO_ATTENTION, Architecture, Training
from features.models.training.request import TrainingRequest

TRAIN, FORWARD = 1.6e-10, 6.5e-11
"""Seconds per multiplication with a weight: in training, and when a network only scores or translates."""

RECURRENT, TRANSFORMER = 1e-4, 3e-5
"""Additional seconds in training per token of either side and layer, by the kind of network."""

STEP = 1.5e-3
"""Additional seconds in training per step of a decoder that runs step by step (see `Architecture.runs_at_once`).

It has one step for each position of a batch.
"""

LEXICON = 2e-7
"""Seconds per source word and target word of each pair, to estimate a lexicon without word alignment."""

SUBWORDS = 1.35
"""Assumed subwords per word. Measured with 4,000 subwords of 30,000 to 230,000 sentence pairs: 1.1 to 1.6."""

ADDITIVE = ("additive", "concat")
"""Attention scores that project keys and queries to `attention_size`."""

_GATES = {"lstm": 4, "gru": 3}
"""Matrices of a recurrent cell. Other cells have one."""


@dataclass(frozen=True)
class TextSize:
    """Size of a text.

    Attributes:
        lines: number of lines.
        words: number of words.
        vocabulary: number of distinct words that occur at least twice.
        subwords_per_word: number of subwords per word for models with subwords.
    """

    lines: float
    words: float
    vocabulary: float
    subwords_per_word: float = SUBWORDS

    def part(self, fraction: float) -> "TextSize":
        """Return the size of a part of the text."""
        vocabulary = self.vocabulary * math.sqrt(fraction)
        return replace(self, lines=self.lines * fraction, words=self.words * fraction, vocabulary=vocabulary)

    def like(self, lines: float, words: float) -> "TextSize":
        """Return a copy with other numbers of lines and words, for another text that the same model reads."""
        return replace(self, lines=lines, words=words)

    def tokens(self, training: Training) -> float:
        """Return the number of words or subwords, without `</s>`."""
        return self.words * (self.subwords_per_word if training.bpe else 1)


CorpusSize = tuple[TextSize, TextSize]
"""Sizes of the source and the target of a corpus."""


@dataclass(frozen=True)
class TimeFactors:
    """Factors that convert times computed from the constants of this module to another machine.

    Attributes:
        training: factor on `training_seconds`.
        forward: factor on the time in which models score or translate.
        lists: factor on the time to read, tune and evaluate lists.
    """

    training: float = 1.0
    forward: float = 1.0
    lists: float = 1.0


def multiply_adds(architecture: Architecture, vocabulary: int) -> tuple[int, int]:
    """Return the multiplications of a forward pass per source token and per target token, approximately.

    Only products with weights count. Products of attention with annotations are small in comparison.

    Args:
        architecture: settings of the network.
        vocabulary: size V of the target vocabulary.
    """
    a = architecture
    embedding, hidden, annotation = a.embedding_size, a.hidden_size, a.annotation
    softmax = hidden * embedding + embedding * vocabulary if a.tied_softmax else hidden * vocabulary
    if not a.recurrent:
        feedforward = 2 * hidden * a.feedforward_size
        # Keys and values of the source are computed once for each layer of the decoder.
        source = a.encoder_layers * (4 * hidden**2 + feedforward) + a.decoder_layers * 2 * hidden**2
        return source, a.decoder_layers * (6 * hidden**2 + feedforward) + softmax
    gates = _GATES.get(a.cell, 1)
    inputs = embedding + (a.encoder_layers - 1) * annotation
    key_size, query_size = (a.attention_size, a.attention_size) if a.attention_score in ADDITIVE else (hidden, 0)
    source = annotation * gates * (inputs + a.encoder_layers * hidden) + annotation * key_size
    # `attend-after` without input feeding reads no context. For the other decoders this is an upper limit.
    additional = 0 if a.decoder == "attend-after" and a.input_feeding == "none" else annotation
    inputs = embedding + additional + (a.decoder_layers - 1) * hidden
    decoder = gates * hidden * (inputs + a.decoder_layers * hidden) + hidden * query_size
    output = hidden * (hidden + annotation + (0 if a.decoder == "attend-after" else embedding))
    if a.decoder == NO_ATTENTION:  # no keys, queries and contexts, and the softmax reads the state
        source -= annotation * key_size
        decoder -= gates * hidden * annotation + hidden * query_size
        output = 0
    return source, decoder + output + softmax


@dataclass(frozen=True)
class Products:
    """Multiplications of a model per word of its source and of its target, which a backward model exchanges."""

    source: float
    target: float
    backward: bool

    def seconds(self, source: float, target: float) -> float:
        """Return the seconds in which words of the source and the target are scored."""
        return FORWARD * (self.source * source + self.target * target)


def vocabulary_of(training: Training, text: TextSize) -> int:
    """Return the number of words or subwords of a model that is trained on a text, without special ones, at least 1."""
    return int(training.bpe or max(1, min(text.vocabulary, training.vocabulary_size or math.inf)))


def products_of(architecture: Architecture, training: Training, corpus: CorpusSize, backward: bool = False) -> Products:
    """Return the multiplications of a model. `corpus` are the sizes of the texts that it is trained on."""
    products = multiply_adds(architecture, vocabulary_of(training, corpus[1]))
    if architecture.language_model:
        products = 0, products[1]
    source, target = (
        count * (side.subwords_per_word if training.bpe else 1) for count, side in zip(products, corpus, strict=True)
    )
    return Products(source=source, target=target, backward=backward)


def training_seconds(
    request: TrainingRequest,
    corpus: CorpusSize,
    dev: CorpusSize,
    aligned: bool = False,
    synthetic: CorpusSize | None = None,
) -> float:
    """Return the seconds of a core in which a model, or a pair of models, trains up to the last planned update.

    Args:
        request: the model to train.
        corpus: sizes of the source and the target of the corpus.
        dev: sizes of the source and the target of dev.
        aligned: whether the corpus has a word alignment.
        synthetic: sizes of the source and the target of the synthetic pairs, or None.
    """
    _, training = request.resolve()
    if request.backward:
        corpus, dev = corpus[::-1], dev[::-1]
    prepared = 0.0
    if request.resolve()[0].lexicon != "none" and not aligned:
        prepared = LEXICON * corpus[0].words * corpus[1].words / max(1, corpus[0].lines)
    if synthetic:
        corpus = _epoch(corpus, synthetic, training.upsample)
    epochs: float = training.epochs
    if training.updates:
        epochs = min(epochs, training.updates * training.gradient_accumulation / max(1, _batches(training, corpus)))
    seconds = epoch_seconds(request, corpus) * len(request.folders)
    dev_epochs = training.fine_tuning_epochs * (DEV_FOLDS + 1) * dev[0].lines / max(1, corpus[0].lines)
    source, target = (side.like(own.lines, own.words) for side, own in zip(corpus, dev, strict=True))
    return prepared + (epochs + dev_epochs) * seconds + epochs * forward_seconds(request, (source, target))


def _epoch(corpus: CorpusSize, synthetic: CorpusSize, times: int) -> CorpusSize:
    """Return the sizes of an epoch with `times` copies of the corpus and one of the synthetic pairs."""
    source, target = (
        real.like(times * real.lines + new.lines, times * real.words + new.words)
        for real, new in zip(corpus, synthetic, strict=True)
    )
    return source, target


def epoch_seconds(request: TrainingRequest, corpus: CorpusSize) -> float:
    """Return the seconds of a core in which one model reads a corpus once in training.

    Args:
        request: the model, or one model of a pair.
        corpus: sizes of the texts that the model reads and predicts.
    """
    architecture, training = request.resolve()
    if architecture.language_model:
        corpus = corpus[0].like(corpus[0].lines, 0), corpus[1]
    model = products_of(architecture, training, corpus)
    positions = _positions(training, corpus)
    layers = (architecture.encoder_layers, architecture.decoder_layers)
    tokens = sum(count * tokens for count, tokens in zip(layers, positions, strict=True))
    source, target = corpus
    products = model.source * source.words + model.target * (target.words + target.lines)
    seconds = TRAIN * products + (RECURRENT if architecture.recurrent else TRANSFORMER) * tokens
    if architecture.recurrent and not architecture.runs_at_once:
        seconds += STEP * _batches(training, corpus) * sum(positions) / max(1, corpus[0].lines)
    return (2 if training.r_drop else 1) * seconds


def forward_seconds(request: TrainingRequest, texts: CorpusSize) -> float:
    """Return the seconds of a core in which a model scores texts, whose sizes are like those of its training texts."""
    source, target = texts
    return products_of(*request.resolve(), texts).seconds(source.words, target.words + target.lines)


def _positions(training: Training, corpus: CorpusSize) -> list[float]:
    """Return the tokens of both sides of a corpus, with one `</s>` for each line."""
    return [side.tokens(training) + side.lines for side in corpus]


def _batches(training: Training, corpus: CorpusSize) -> float:
    """Return the number of batches of an epoch."""
    target = _positions(training, corpus)[1]
    return target / training.batch_tokens if training.batch_tokens else corpus[0].lines / training.batch_size
