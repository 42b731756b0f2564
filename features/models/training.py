"""Training: Adam on the likelihood, early stopping on dev perplexity, the best model kept."""

import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from features.models.batches import Pair, bucketed, pad
from features.models.folder import ModelConfig, create_folder, save_weights
from features.models.model import EncoderDecoder
from features.models.vocabulary import PADDING, UNKNOWN, Vocabulary, build_vocabulary
from features.progress import Bar, note, progress_bar
from moses_io.errors import InputError

TokenPair = tuple[list[str], list[str]]
"""Tokens of a source sentence and of its translation, as the network sees them."""


@dataclass
class _Run:
    """One training under way."""

    config: ModelConfig
    network: EncoderDecoder
    corpus: list[Pair]
    dev: list[Pair]
    device: torch.device
    rng: random.Random
    updates: int = 0
    best: float = math.inf
    stale: int = 0
    planned: int = field(init=False)
    optimizer: torch.optim.Adam = field(init=False)

    def __post_init__(self) -> None:
        settings = self.config.training
        self.planned = settings.epochs * math.ceil(len(self.corpus) / settings.batch)
        if settings.updates:
            self.planned = min(self.planned, settings.updates)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=settings.rate)


def train(
    config: ModelConfig, corpus: Sequence[TokenPair], dev: Sequence[TokenPair], folder: Path, device: torch.device
) -> float:
    """Train a model into `folder`; each epoch adds a line to its `metrics.jsonl`.

    Pairs with an empty or an over-long side are left out of training, not of dev.

    Returns:
        The best perplexity on dev, per word with `</s>`.

    Raises:
        InputError: nothing is left to train on, the folder is in use, or the loss grows out of all bounds.
    """
    settings = config.training
    kept = [pair for pair in corpus if min(map(len, pair)) > 0 and max(map(len, pair)) <= settings.length]
    if not kept:
        raise InputError(f"no sentence pair to train on: each has an empty side or more than {settings.length} words")
    source = build_vocabulary((pair[0] for pair in kept), settings.frequency)
    target = build_vocabulary((pair[1] for pair in kept), settings.frequency)
    _tell_unknown(dev, source, target)
    create_folder(folder, config, source, target)
    torch.manual_seed(settings.seed)
    network = EncoderDecoder(config.architecture, len(source), len(target), settings.dropout).to(device)
    note(
        f"{config.preset}, {config.direction}: {len(kept)} of {len(corpus)} pairs, vocabularies of {len(source)} and "
        f"{len(target)}, {sum(weight.numel() for weight in network.parameters()):,} parameters, on {device}"
    )
    run = _Run(
        config,
        network,
        _encode(kept, source, target),
        _encode(dev, source, target),
        device,
        random.Random(settings.seed),
    )
    started = time.monotonic()
    with progress_bar(f"train {folder.name}", run.planned) as bar:
        for epoch in range(1, settings.epochs + 1):
            _finish_epoch(run, epoch, _train_epoch(run, bar), folder, started)
            if run.updates >= run.planned or run.stale >= settings.patience:
                break
    return run.best


def perplexity(network: EncoderDecoder, pairs: Sequence[Pair], device: torch.device) -> float:
    """Return exp of the mean -log p of a target word, `</s>` included."""
    network.eval()
    loss, words = 0.0, 0
    with torch.inference_mode():
        for numbers in bucketed(pairs, 64):
            source, target = _tensors(pairs, numbers, device)
            loss += float(network.loss(source, target))
            words += _words(target)
    return _exp(loss / words)


def _train_epoch(run: _Run, bar: Bar) -> dict[str, float]:
    """Pass once over the corpus, or up to the last update; return what the epoch measured."""
    run.network.train()
    settings, started = run.config.training, time.monotonic()
    loss, words, rate = 0.0, 0, settings.rate
    for numbers in bucketed(run.corpus, settings.batch, run.rng):
        rate = settings.rate * (1 - 0.9 * run.updates / run.planned)
        batch_loss, batch_words = _update(run, numbers, rate)
        loss, words = loss + batch_loss, words + batch_words
        _check_finite(batch_loss, run)
        speed = words / (time.monotonic() - started)
        bar.advance(1, f"{speed:,.0f} tokens/s, loss {batch_loss / batch_words:.3f}")
        if run.updates >= run.planned:
            break
    return {"train_perplexity": _exp(loss / words), "tokens_per_second": speed, "rate": rate}


def _update(run: _Run, numbers: list[int], rate: float) -> tuple[float, int]:
    """Take one step on a batch; return its summed loss and its words."""
    source, target = _tensors(run.corpus, numbers, run.device)
    words = _words(target)
    loss = run.network.loss(source, target)
    run.optimizer.zero_grad()
    (loss / words).backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(run.network.parameters(), run.config.training.clip)
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    run.optimizer.step()
    run.updates += 1
    return float(loss.detach()), words


def _finish_epoch(run: _Run, epoch: int, measured: dict[str, float], folder: Path, started: float) -> None:
    """Measure dev, keep the model if it is the best, and write the epoch down."""
    dev = perplexity(run.network, run.dev, run.device)
    _check_finite(dev, run)
    better = dev < run.best
    run.best, run.stale = (dev, 0) if better else (run.best, run.stale + 1)
    if better:
        save_weights(folder, run.network)
    row = {"epoch": epoch, "updates": run.updates, "dev_perplexity": dev, **measured}
    row["seconds"] = time.monotonic() - started
    with open(folder / "metrics.jsonl", "a", encoding="utf-8") as stream:
        stream.write(json.dumps({**row, "best": better}) + "\n")
    note(
        f"epoch {epoch}: perplexity train {row['train_perplexity']:.3f}, dev {dev:.3f}{' (best)' if better else ''}, "
        f"{row['tokens_per_second']:,.0f} tokens/s, {row['seconds']:.0f} s"
    )


def _tell_unknown(dev: Sequence[TokenPair], source: Vocabulary, target: Vocabulary) -> None:
    """Say how many words of dev the vocabularies do not know; most of them tells of languages mixed up."""
    shares = []
    for side, vocabulary in enumerate((source, target)):
        numbers = [number for pair in dev for number in vocabulary.encode(pair[side])]
        shares.append(numbers.count(UNKNOWN) / max(1, len(numbers)))
    note(f"unknown words of dev: source {100 * shares[0]:.1f} %, target {100 * shares[1]:.1f} %")
    if max(shares) > 0.5:
        note("warning: most words of dev are unknown; are source and target the same way round in training and dev?")


def _check_finite(value: float, run: _Run) -> None:
    if not math.isfinite(value):
        raise InputError(f"the loss grew out of all bounds within {run.updates} updates; try a smaller rate")


def _encode(pairs: Sequence[TokenPair], source: Vocabulary, target: Vocabulary) -> list[Pair]:
    return [(source.encode(left), target.encode(right)) for left, right in pairs]


def _tensors(pairs: Sequence[Pair], numbers: list[int], device: torch.device) -> tuple[Tensor, Tensor]:
    return pad([pairs[n][0] for n in numbers], device), pad([pairs[n][1] for n in numbers], device)


def _words(target: Tensor) -> int:
    return int((target[:, 1:] != PADDING).sum())


def _exp(mean: float) -> float:
    return math.exp(mean) if mean < 700 else math.inf
