"""Fine-tuning on dev at the end of a training, since dev resembles the text that will be translated.

Feature weights are tuned on model scores of dev, and a model overestimates sentences that it was trained on. So dev is
divided into folds, as in stacked generalization (Wolpert 1992):

* The model is fine-tuned once for each fold, without that fold. These weights score the sentences of the fold
  (`DevFolds`).
* The model is fine-tuned on all of dev. These weights score all other sentences.

The fine-tuned weights are kept if they lower the cross-validated perplexity of dev.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

import torch

from features.links import NO_LINKS
from features.models.config import BASE, FOLD_WEIGHTS, RECORD, WEIGHTS, DevFolds, weights_file
from features.models.folder import load_weights, save_weights
from features.models.tables import find
from features.models.training.checkpoint import Progress, Run
from features.models.training.encoding import encode, planned_updates
from features.models.training.epoch import DevLosses, Diverged, dev_losses, perplexities_of, train_epoch
from features.models.training.preparation import Task, usable
from features.progress import Bar, log
from features.sentences import TokenPair
from moses_io.files.errors import InputError, counted
from moses_io.files.streams import open_output

LEARNING_RATE_FACTOR = 0.5
"""First learning rate of fine-tuning, relative to the learning rate of the training."""


def check_fine_tuning(task: Task) -> None:
    """Raise `InputError` if dev has fewer than two different usable sentences, which cross-validation needs."""
    learnable = len(_divide(task).folds) if task.settings.fine_tuning_epochs else 2
    if learnable < 2:
        different = f"{counted(learnable, 'sentence')} of 1 to {task.settings.max_length} words per side"
        raise InputError(
            f"setting 'fine_tuning_epochs': expected two different sentences of dev for fine-tuning, found {different}"
        )


class DevFineTuning:
    """Fine-tuning on dev: once without each fold, and once on all of dev.

    Attributes:
        planned: total number of updates.
    """

    def __init__(self, run: Run, task: Task) -> None:
        self._run, self._folds = run, _divide(task)
        folds = [self._folds.fold_of(_source(task, pair)) if usable(pair, task) else 0 for pair in task.dev]
        self._parts = {fold: _part(run, task.dev, folds, fold) for fold in (*self._folds.numbers, 0)}
        self.planned = sum(part.planned for part in self._parts.values())

    def perform(self, bar: Bar) -> None:
        """Fine-tune on dev, and keep the result if the cross-validated perplexity improves.

        The best weights of the training stay in `base.safetensors` until the training ends, so that a killed training
        can resume fine-tuning from them.
        """
        _save_base(self._run)
        # The training's optimizer is not used any more: free the memory of its state.
        self._run.optimizer.state.clear()
        try:
            perplexities = self._improved(bar)
            if perplexities:
                self._keep(perplexities, self._learn(0, bar))
                return
        except Diverged as error:
            log.info(f"fine-tuning on dev: {error}")
        if self._run.ranks.is_main:
            self._undo()

    def _improved(self, bar: Bar) -> list[float]:
        """Return the cross-validated perplexities if they improve, else an empty list.

        The first is of all learners together, the others are of each learner.
        """
        before, after = list[DevLosses](), list[DevLosses]()
        for fold in self._folds.numbers:
            self._restore_base()
            before.append(dev_losses(self._parts[fold]))
            self._learn(fold, bar)
            after.append(dev_losses(self._parts[fold]))
            self._save(weights_file(fold))
        known, perplexities = (perplexities_of(_added(losses)) for losses in (before, after))
        better = perplexities[0] < known[0]
        change = f"perplexity {known[0]:.3f} -> {perplexities[0]:.3f}{' (best)' if better else ''}"
        log.info(f"fine-tuned on dev, cross-validated: {change}")
        return perplexities if better else []

    def _learn(self, fold: int, bar: Bar) -> dict[str, float]:
        """Fine-tune the base weights without a fold (0: on all of dev). Return the metrics of the last epoch."""
        part = self._parts[fold]
        settings, parameters = part.settings, part.parameters
        optimizer = find("optimizer", settings.optimizer)(parameters, lr=settings.learning_rate)
        training = replace(part, optimizer=optimizer, rng=random.Random(settings.seed))
        torch.manual_seed(settings.seed + part.ranks.rank)
        self._restore_base()
        for _ in range(settings.epochs):
            measured = train_epoch(training, bar)
        return measured

    def _restore_base(self) -> None:
        for learner in self._run.learners:
            network = learner.network
            network.load_state_dict(load_weights(learner.folder / BASE, network.state_dict(), len(learner.target)))

    def _save(self, weights_name: str) -> None:
        for learner in self._run.learners if self._run.ranks.is_main else ():
            save_weights(learner.folder, learner.network, weights_name)

    def _keep(self, perplexities: Sequence[float], measured: dict[str, float]) -> None:
        """Keep the weights that were fine-tuned on all of dev, and record them as one more epoch."""
        progress, whole = self._run.progress, self._parts[0].progress
        progress.best = perplexities[0]
        progress.seconds += sum(part.progress.seconds for part in self._parts.values())
        for learner, dev in zip(self._run.learners, perplexities[1:], strict=True):
            if self._run.ranks.is_main:
                self._folds.write(learner.folder)
                done = {"epoch": progress.epoch + whole.epoch, "updates": progress.updates + whole.updates}
                learner.add_row({**done, "dev_perplexity": dev, **measured, "seconds": progress.seconds, "best": True})
        self._save(WEIGHTS)

    def _undo(self) -> None:
        """Restore the weights from before fine-tuning, even if a killed fine-tuning had already replaced them."""
        for learner in self._run.learners:
            with open_output(str(learner.folder / WEIGHTS)) as stream:
                stream.write((learner.folder / BASE).read_bytes())
            for name in (RECORD, *FOLD_WEIGHTS):
                (learner.folder / name).unlink(missing_ok=True)
            learner.write_rows()


def _divide(task: Task) -> DevFolds:
    """Divide the usable sentences of dev into folds."""
    return DevFolds.divide(_source(task, pair) for pair in task.dev if usable(pair, task))


def _source(task: Task, pair: TokenPair) -> list[str]:
    """Return the source sentence of a pair. The pairs of a backward model begin with the translation."""
    return pair[1 if task.models[0].direction == "backward" else 0]


def _part(run: Run, dev: Sequence[TokenPair], folds: Sequence[int], fold: int) -> Run:
    """Return a run that trains on dev without a fold and is measured on that fold.

    With fold 0 it trains on all usable sentences of dev.
    """
    seen = [pair for pair, sentence_fold in zip(dev, folds, strict=True) if sentence_fold not in (0, fold)]
    unseen = [pair for pair, sentence_fold in zip(dev, folds, strict=True) if sentence_fold == fold]
    settings = replace(
        run.settings, epochs=run.settings.fine_tuning_epochs, updates=0,
        learning_rate=LEARNING_RATE_FACTOR * run.settings.learning_rate, schedule="linear",
        warmup_updates=0, guided_alignment=0.0, average_checkpoints=0,
    )  # fmt: skip
    corpus = encode(seen, run.learners)
    planned = planned_updates(settings, corpus[0], seen, run.learners)
    return replace(
        run, settings=settings, pairs=seen, links=NO_LINKS, corpus=corpus, dev=encode(unseen, run.learners),
        planned=planned, progress=Progress(), recent=[],
    )  # fmt: skip


def _added(losses: Sequence[DevLosses]) -> DevLosses:
    """Add up the losses of all folds, separately for each learner."""
    of_learners = zip(*losses, strict=True)
    return [(sum(loss for loss, _ in each), sum(words for _, words in each)) for each in of_learners]


def _save_base(run: Run) -> None:
    """Copy the best weights of the training to `base.safetensors`, unless a killed fine-tuning has already done so."""
    for learner in run.learners if run.ranks.is_main else ():
        if not (learner.folder / BASE).exists():
            with open_output(str(learner.folder / BASE)) as stream:
                stream.write((learner.folder / WEIGHTS).read_bytes())
    run.ranks.barrier()
