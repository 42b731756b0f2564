"""One epoch of training: its updates, optimizers and schedules, and the evaluation on dev."""

import math
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from features.links import WIDTH
from features.models.batches import bucketed
from features.models.device import on_device
from features.models.network.model import Objective
from features.models.network.objectives import guided_alignment_loss, trace
from features.models.settings import Training, rows_ahead
from features.models.tables import find
from features.models.training.checkpoint import Run
from features.models.training.encoding import encode
from features.models.training.learner import loss_of
from features.models.training.metrics import perplexity
from features.models.vocabulary import BpeDropout
from features.progress import Bar, log
from moses_io.files.errors import InputError

DevLosses = list[tuple[float, int]]
"""For each learner, the sum of -log p of its targets in nats, and their number of words, counting each `</s>`."""


class Diverged(InputError):
    """Error for a training loss that is infinite or NaN."""


def train_epoch(run: Run, bar: Bar) -> dict[str, float]:
    """Train for one epoch, or up to the last planned update, and return the measurements of the epoch."""
    for learner in run.learners:
        learner.network.train()
    settings = run.settings
    progress = run.progress
    started = time.monotonic()
    progress.epoch += 1
    if settings.bpe_dropout:
        dropout = BpeDropout(settings.bpe_dropout, random.Random(run.rng.getrandbits(31)))
        run.corpus = encode(run.pairs, run.learners, run.links, dropout)
    batches = bucketed(run.corpus[0].lengths, settings.batch_size, settings.batch_tokens, run.rng)
    loss = 0.0
    tokens = 0
    length = 0
    learning_rate = settings.learning_rate
    for first in range(0, len(batches), settings.gradient_accumulation):
        group = batches[first : first + settings.gradient_accumulation]
        learning_rate = learning_rate_at(settings, progress.epoch, progress.updates, run.planned)
        step_loss, step_tokens = _update(run, group, learning_rate)
        check_finite(step_loss, run)
        loss, tokens = loss + step_loss, tokens + step_tokens
        length += sum(int(corpus.target_lengths[batch].sum()) for corpus in run.corpus for batch in group)
        speed = tokens / (time.monotonic() - started)
        bar.advance(1, f"{speed:,.0f} tokens/s, loss {step_loss / step_tokens:.3f}")
        if progress.updates == settings.updates:
            break
    progress.seconds += time.monotonic() - started
    return {
        "train_perplexity": perplexity(loss / length),
        "tokens_per_second": speed,
        "learning_rate": learning_rate,
    }


def _update(run: Run, batches: Sequence[Sequence[int]], learning_rate: float) -> tuple[float, int]:
    """Take one optimizer step on some batches, and return their sum of -log p and their number of tokens.

    As in the papers, SGD divides the loss by the number of sentences. Adam is insensitive to the scale of the loss, and
    divides it by the number of tokens. This process trains on its share of each batch.
    """
    tokens = sum(corpus.tokens(batch) for corpus in run.corpus for batch in batches)
    divisor = sum(map(len, batches)) if run.settings.optimizer == "sgd" else tokens
    # falls linearly and reaches 0 after half of the planned updates
    weight = run.settings.guided_alignment * (1 - 2 * run.progress.updates / run.planned)
    plain: list[Tensor] = []
    run.optimizer.zero_grad()
    # The share of a process can be empty if a batch has fewer sentences than there are processes.
    for batch in filter(None, map(run.ranks.shard, batches)):
        outcomes = [
            learner.forward(corpus, batch, run.device) for learner, corpus in zip(run.learners, run.corpus, strict=True)
        ]
        loss = torch.stack([outcome.loss for outcome in outcomes]).sum()  # ()
        gain = torch.stack([outcome.bonus for outcome in outcomes]).sum()  # ()
        if weight > 0:
            gain = gain - weight * _guided_alignment_loss(run, batch, outcomes)
        if len(outcomes) > 1:
            gain = gain + run.settings.agreement_weight * trace(outcomes[0].rows, outcomes[1].rows).sum()  # ()
        ((loss - gain) / divisor).backward()  # type: ignore[no-untyped-call]
        plain += [outcome.plain for outcome in outcomes]
    plain = run.ranks.add_gradients(run.parameters, plain)
    nn.utils.clip_grad_norm_(run.parameters, run.settings.clip_norm)
    for group in run.optimizer.param_groups:
        group["lr"] = learning_rate
    run.optimizer.step()
    run.progress.updates += 1
    return sum(torch.stack(plain).tolist()), tokens  # tolist() waits for the GPU, so it comes last


def _guided_alignment_loss(run: Run, batch: Sequence[int], outcomes: Sequence[Objective]) -> Tensor:
    """Return the guided alignment loss () of a batch, summed over all learners."""
    total = outcomes[0].bonus.new_zeros(())
    for learner, corpus, outcome in zip(run.learners, run.corpus, outcomes, strict=True):
        ahead = rows_ahead(learner.config.architecture)
        sentences = [[divmod(link, WIDTH) for link in sorted(corpus.links[number])] for number in batch]
        links = [(j, sentence, i) for sentence, alignment in enumerate(sentences) for i, j in alignment]
        counts = Counter((j, sentence) for j, sentence, _ in links)
        shifted = [(j + ahead, sentence, i + 1) for j, sentence, i in links]
        indices = on_device(shifted, run.device, torch.long)  # (L, 3)
        weights = on_device([1 / counts[j, sentence] for j, sentence, _ in links], run.device)  # (L,)
        total = total + guided_alignment_loss(outcome.rows, indices.view(-1, 3).t(), weights)
    return total


def dev_losses(run: Run) -> DevLosses:
    """Return the losses of all learners on dev."""
    pairs = zip(run.learners, run.dev, strict=True)
    losses = run.ranks.sum_up([loss_of(learner, dev, run.device, run.ranks) for learner, dev in pairs])
    return [(loss, int(dev.target_lengths.sum())) for loss, dev in zip(losses, run.dev, strict=True)]


def perplexities_of(losses: DevLosses) -> list[float]:
    """Return perplexities per word: first of all learners together, then of each learner."""
    together = tuple(map(sum, zip(*losses, strict=True)))
    return [perplexity(loss / words) for loss, words in (together, *losses)]


def check_finite(value: float, run: Run) -> None:
    """Raise `Diverged` if a loss is infinite or NaN."""
    if not math.isfinite(value):
        raise Diverged(f"the loss diverged within {run.progress.updates} updates. Try a smaller learning_rate")


def adam(weights: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """Return an Adam optimizer (Kingma & Ba 2015) that uses torch's fused kernel."""
    return torch.optim.Adam(weights, lr=lr, fused=True)


def learning_rate_at(settings: Training, epoch: int, updates: int, planned: int) -> float:
    """Return the learning rate after `updates` of `planned` updates, from schedule and warmup."""
    factor: float = find("schedule", settings.schedule)(settings, epoch, updates / planned)
    return settings.learning_rate * factor * warmed_up(updates, settings.warmup_updates)


def warmed_up(updates: int, warmup_updates: int) -> float:
    """Return the factor on the learning rate after `updates` updates.

    In the first of w warmup updates it is 1/w, and from the last one on 1 (Vaswani et al. 2017).
    """
    return min(1.0, (updates + 1) / warmup_updates) if warmup_updates else 1.0


def warn_of_long_warmup(warmup_updates: int, planned: int) -> None:
    """Log a warning if the warmup is longer than the training."""
    if warmup_updates > planned:
        log.warning(
            f"warmup_updates={warmup_updates}, but {planned} updates are planned: the learning rate never reaches its "
            "maximum"
        )


def linear(settings: Training, epoch: int, progress: float) -> float:
    """Return a factor that falls linearly from 1 to 0.1 over the planned updates."""
    return 1 - 0.9 * min(progress, 1.0)


def constant(settings: Training, epoch: int, progress: float) -> float:
    """Return the factor 1."""
    return 1.0


def halving(settings: Training, epoch: int, progress: float) -> float:
    """Return a factor that is halved after `decay_start` epochs, and then every `decay_interval` epochs.

    Luong et al. 2015 and Yang et al. 2017 use this schedule.
    """
    return float(0.5 ** max(0, math.ceil((epoch - settings.decay_start) / settings.decay_interval)))
