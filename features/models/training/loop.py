"""The training loop: epochs, early stopping on dev perplexity, averaging of weights, optional fine-tuning on dev."""

import contextlib
from pathlib import Path

import torch

from features.models.config import BASE, CHECKPOINT
from features.models.device import within_memory
from features.models.folder import locked_for_training, remove_leftovers, save_weights
from features.models.training.checkpoint import Run, random_state, save, weights_of
from features.models.training.dev_fine_tuning import DevFineTuning, check_fine_tuning
from features.models.training.epoch import check_finite, dev_losses, perplexities_of, train_epoch
from features.models.training.preparation import LARGE, Task, begin_run, is_finished, resume_run
from features.progress import log, progress_bar


def train(task: Task, resume: bool = False) -> None:
    """Train the model of a task into its folder, or a pair of models into its folders `forward` and `backward`.

    Pairs with an empty or overlong side are left out of training, but not of dev. The folder must be empty or missing,
    unless `resume`. Several processes (`task.ranks`) share each batch. The batch size does not depend on their number.

    Args:
        task: the training.
        resume: continue a training that was killed, from the end of its last epoch.

    Raises:
        InputError: no sentence pair is left to train on, a folder does not match or is in use, the memory does not
            suffice, the loss diverges, or `fine_tuning_epochs` is set and dev has fewer than two different usable
            sentences.
    """
    check_fine_tuning(task)
    with contextlib.ExitStack() as stack:
        for folder in dict.fromkeys((task.folder, *task.folders)) if task.ranks.is_main else ():
            stack.enter_context(locked_for_training(folder))
        with within_memory(f"Lower batch_size, batch_tokens, max_length, {LARGE}"):
            _train(task, resume)


def _train(task: Task, resume: bool) -> None:
    folder, checkpoint = task.folder, task.folder / CHECKPOINT
    run = _begin_training(task, resume) if task.ranks.is_main else None
    if not task.ranks.broadcast(run is not None):
        return
    # The other processes begin with the checkpoint that the leading process wrote.
    run = run or resume_run(task, checkpoint)
    run.ranks.barrier()
    fine_tuning = DevFineTuning(run, task) if run.settings.fine_tuning_epochs else None
    planned = run.planned + (fine_tuning.planned if fine_tuning else 0)
    with progress_bar(f"train {folder.name}", planned, run.progress.updates, whole=True) as bar:
        while not _ended(run):
            _finish_epoch(run, train_epoch(run, bar))
            _write_checkpoint(run, checkpoint)
        _try_average(run)
        if fine_tuning:
            fine_tuning.perform(bar)
    if run.ranks.is_main:
        remove_leftovers([folder, *task.folders])
        checkpoint.unlink()
        _remove_bases(task)
    log.info(f"{folder.name}: perplexity on dev {run.progress.best:.3f} per word, with </s>")


def _begin_training(task: Task, resume: bool) -> Run | None:
    """Begin or resume the training, or return None if it has already ended.

    If a run is returned, its checkpoint exists, and the other processes begin with it.
    """
    folder, checkpoint = task.folder, task.folder / CHECKPOINT
    interrupted = resume and checkpoint.exists()
    if resume and not interrupted and is_finished(task):
        _remove_bases(task)
        log.info(f"{folder.name}: this training has already ended")
        return None
    if interrupted:
        run = resume_run(task, checkpoint)
        epoch = run.progress.epoch
        log.info(f"{folder.name}: {f'continuing after epoch {epoch}' if epoch else 'starting again'}")
        return run
    with progress_bar("prepare", None):
        run = begin_run(task, resume)
    save(run, checkpoint, [random_state(run.device)])
    return run


def _remove_bases(task: Task) -> None:
    """Remove the weights that a fine-tuning started from.

    Call it only after the training has ended: a resumed fine-tuning would otherwise start from its own result.
    """
    for folder in task.folders:
        (folder / BASE).unlink(missing_ok=True)


def _write_checkpoint(run: Run, checkpoint: Path) -> None:
    """Write the checkpoint, with the random state of every process."""
    gathered = {name: run.ranks.gather(state) for name, state in random_state(run.device).items()}
    if run.ranks.is_main:
        states = [dict(zip(gathered, each, strict=True)) for each in zip(*gathered.values(), strict=True)]
        save(run, checkpoint, states)


def _ended(run: Run) -> bool:
    settings, progress = run.settings, run.progress
    spent = progress.epoch >= settings.epochs or 0 < settings.updates <= progress.updates
    return spent or progress.stale >= settings.patience


def _finish_epoch(run: Run, measured: dict[str, float]) -> None:
    """Evaluate on dev, save the weights if they are the best so far, and record the epoch."""
    progress = run.progress
    joint, *perplexities = perplexities_of(dev_losses(run))
    check_finite(joint, run)
    better = joint < progress.best
    progress.best, progress.stale = (joint, 0) if better else (progress.best, progress.stale + 1)
    if run.settings.average_checkpoints:
        weights = [weights_of(learner) for learner in run.learners]
        run.recent = [*run.recent, weights][-run.settings.average_checkpoints :]
    for learner, dev in zip(run.learners, perplexities, strict=True) if run.ranks.is_main else ():
        if better:
            save_weights(learner.folder, learner.network)
        row = {"epoch": progress.epoch, "updates": progress.updates, "dev_perplexity": dev, **measured}
        learner.add_row({**row, "seconds": progress.seconds, "best": better})
    log.info(
        f"epoch {progress.epoch}: perplexity train {measured['train_perplexity']:.3f}, dev {joint:.3f}"
        f"{' (best)' if better else ''}, {measured['tokens_per_second']:,.0f} tokens/s, {progress.seconds:.0f} s"
    )


def _try_average(run: Run) -> None:
    """Save the average weights of the last epochs if their perplexity on dev is better than the best so far."""
    if len(run.recent) < 2:
        return
    for number, learner in enumerate(run.learners):
        recent = [weights[number] for weights in run.recent]
        names = [name for name, _ in learner.network.named_parameters()]
        stacks = {name: torch.stack([weights[name] for weights in recent]) for name in names}  # (average, …) each
        means = {name: stack.mean(dim=0) for name, stack in stacks.items()}  # (…) each
        # Buffers, such as the table of a lexicon, are not averaged.
        learner.network.load_state_dict(recent[-1] | means)
    joint, *perplexities = perplexities_of(dev_losses(run))
    better = joint < run.progress.best
    log.info(f"average of the last {len(run.recent)} checkpoints: dev {joint:.3f}{' (best)' if better else ''}")
    if better:
        run.progress.best = joint
        for learner, dev in zip(run.learners, perplexities, strict=True) if run.ranks.is_main else ():
            save_weights(learner.folder, learner.network)
            learner.add_row(learner.rows[-1] | {"dev_perplexity": dev, "best": True})
