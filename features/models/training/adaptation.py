"""The end of a training: epochs on dev, which is of the kind of text that will be translated.

Weights of features are tuned on what models say of dev, and a model says too much of what it has learned. So dev is
learned once for each of its folds, without that fold; the sentences of a fold are scored by the weights that have not
seen it (`features.models.folds`), as in stacked generalization (Wolpert 1992), and all others by weights that have seen
all of dev. Perplexity on the folds says whether the model is better for it.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import safetensors.torch
import torch

from features.models.batches import bucketed
from features.models.config import BASE, WEIGHTS
from features.models.folder import save_weights
from features.models.folds import FOLD_FILES, DevFolds, weights_without
from features.models.tables import find
from features.models.training.checkpoint import Progress, Run
from features.models.training.epoch import dev_losses, perplexities_of, train_epoch
from features.models.training.learner import TokenPair, encode
from features.models.training.preparation import Task, usable
from features.progress import Bar, note, progress_bar
from moses_io.errors import InputError
from moses_io.streams import open_output

SHARE = 0.5
"""Its first step size, of that of the training."""


def check_adaptable(task: Task) -> None:
    """Refuse a dev of which no fold can be left out."""
    if task.settings.adapt and len(divide(task).numbers) < 2:
        raise InputError(
            f"setting 'adapt' needs two different sentences of dev, each of 1 to {task.settings.length} words, or more"
        )


def divide(task: Task) -> DevFolds:
    """Divide the sentences of dev that can be learned."""
    return DevFolds.divide(_source(task, pair) for pair in task.dev if usable(pair, task.settings))


def adapt(run: Run, task: Task) -> None:
    """Learn from dev, if that makes the best weights of a training better.

    Those before are kept in `base.safetensors` until the training ends, for a killed one to begin here again.
    """
    folds = divide(task)
    places = [folds.of(_source(task, pair)) for pair in task.dev]
    parts = [_part(run, task.dev, places, fold) for fold in (*folds.numbers, 0)]
    _keep_base(run)
    with progress_bar(f"adapt {task.folder.name}", sum(part.planned for part in parts)) as bar:
        losses = []
        for fold, part in zip(folds.numbers, parts, strict=False):
            _learn(part, bar)
            losses.append(dev_losses(part))  # (loss, words) of each learner
            _save(run, weights_without(fold))
        of_learners = zip(*losses, strict=True)
        sums = [(sum(loss for loss, _ in each), sum(words for _, words in each)) for each in of_learners]
        perplexities = perplexities_of(sums)
        better = perplexities[0] < run.progress.best
        note(f"dev, each fold by the others: perplexity {perplexities[0]:.3f}{' (best)' if better else ''}")
        if better:
            measured = _learn(parts[-1], bar)
            _finish(run, parts[-1], folds, perplexities, measured)
        elif run.ranks.leads:
            _remove_folds(run)


def _source(task: Task, pair: TokenPair) -> list[str]:
    """Return the source sentence of a pair, which a backward model predicts."""
    return pair[1 if task.models[0].direction == "backward" else 0]


def _part(run: Run, dev: Sequence[TokenPair], places: Sequence[int], fold: int) -> Run:
    """Return a training on dev without a fold, by which it is measured; of 0, on all that can be learned."""
    seen = [pair for pair, place in zip(dev, places, strict=True) if place not in (0, fold)]
    unseen = [pair for pair, place in zip(dev, places, strict=True) if place == fold]
    epochs, rate = run.settings.adapt, SHARE * run.settings.rate
    settings = replace(
        run.settings, epochs=epochs, updates=0, rate=rate, schedule="linear", warmup=0, guidance=0.0, average=0
    )
    corpus = encode(seen, run.learners)
    batches = len(bucketed(corpus[0].pairs, settings.batch, settings.tokens))
    return replace(
        run,
        settings=settings,
        pairs=seen,
        links=(),
        corpus=corpus,
        dev=encode(unseen, run.learners),
        optimizer=find("optimizer", settings.optimizer)(run.parameters, lr=rate),
        planned=epochs * math.ceil(batches / settings.accumulate),
        rng=random.Random(settings.seed),
        progress=Progress(),
        recent=[],
    )


def _learn(part: Run, bar: Bar) -> dict[str, float]:
    """Train from the base; return what the last epoch measured."""
    torch.manual_seed(part.settings.seed + part.ranks.rank)
    for learner in part.learners:
        learner.network.load_state_dict(safetensors.torch.load_file(learner.folder / BASE))
    for _ in range(part.settings.epochs):
        measured = train_epoch(part, bar)
    return measured


def _finish(run: Run, part: Run, folds: DevFolds, perplexities: Sequence[float], measured: dict[str, float]) -> None:
    """Keep what has learned from all of dev, and write it down as one more epoch."""
    progress = run.progress
    progress.best = perplexities[0]
    if not run.ranks.leads:
        return
    for learner, dev in zip(run.learners, perplexities[1:], strict=True):
        folds.write(learner.folder)
        save_weights(learner.folder, learner.network)
        reached = {"epoch": progress.epoch + part.progress.epoch, "updates": progress.updates + part.progress.updates}
        row = {**reached, "dev_perplexity": dev, **measured, "seconds": progress.seconds + part.progress.seconds}
        learner.add_row({**row, "best": True})


def _keep_base(run: Run) -> None:
    """Keep the best weights of the training, unless a killed adaptation has."""
    for learner in run.learners if run.ranks.leads else ():
        if not (learner.folder / BASE).exists():
            with open_output(str(learner.folder / BASE)) as stream:
                stream.write((learner.folder / WEIGHTS).read_bytes())
    run.ranks.meet()


def _save(run: Run, name: str) -> None:
    for learner in run.learners if run.ranks.leads else ():
        save_weights(learner.folder, learner.network, name)


def _remove_folds(run: Run) -> None:
    for learner in run.learners:
        for name in FOLD_FILES:
            (learner.folder / name).unlink(missing_ok=True)
