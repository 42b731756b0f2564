"""Fine-tuning of pretrained models on a parallel corpus, of all weights or with LoRA."""

import hashlib
import itertools
import json
import math
import os
import random
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import safetensors
import torch
from torch import Tensor, nn
from torch.nn import functional

from features.feature import Sentence
from features.models.batches import bucketed
from features.models.device import find_device, multiplies_bfloat16, within_memory
from features.models.folder import check_free, locked_for_training
from features.models.pretrained.encoding import Encoding, Pair
from features.models.pretrained.finetuning_run import (
    Corpus,
    Run,
    Settings,
    load_weights,
    restore,
    save,
    save_weights,
)
from features.models.pretrained.folder import Opened, open_folder, readable, visible_files, without_bars
from features.models.pretrained.network import Causal
from features.models.pretrained.options import parse_options
from features.models.pretrained.prefixes import TOLERANCE, find_abilities, logits_of
from features.models.training.epoch import warmed_up, warn_of_long_warmup
from features.models.training.metrics import perplexity
from features.progress import Bar, log, progress_bar
from features.ragged import Ragged
from moses_io.files.errors import InputError, at
from moses_io.files.json_files import as_written, write_json, write_json_lines
from moses_io.files.streams import digest
from moses_io.files.text import ParallelFiles, parallel_lines, tokens

STATE = "finetuning"
"""Subfolder of the output with settings and metrics, and until the training ends with the files to continue it."""

SETTINGS, METRICS, CHECKPOINT, BEST, NEW = (
    "settings.json",
    "metrics.jsonl",
    "checkpoint.safetensors",
    "best.safetensors",
    "folder",
)

WEIGHTS = (".safetensors", ".bin", ".index.json", ".h5", ".msgpack", ".ot", ".pt", ".pth", ".onnx", ".gguf")
"""Ends of the names of files with weights, in the formats of all libraries."""

OPTIONS = ("text", "language", "template", "truecaser")
"""Options of feature `hf` that `finetune` accepts."""

BLOCK = 1024
"""Number of pairs that are encoded together."""


def fine_tune(
    argument: str,
    corpus: ParallelFiles,
    dev: ParallelFiles,
    output: Path,
    settings: Settings,
    device: str = "auto",
    resume: bool = False,
) -> None:
    """Fine-tune a model of transformers, and write it into a folder that transformers reads.

    The loss is that of the text that feature `hf` scores. The weights of the epoch with the lowest perplexity of dev
    are written as float32. LoRA's matrices are added to the weights that they belong to.

    Args:
        argument: folder, languages and options of the model, as of feature `hf`.
        corpus: parallel corpus, in the form of the n-best lists.
        dev: dev set for early stopping.
        output: folder to create.
        settings: settings of the training.
        device: `auto`, `cpu` or `cuda`.
        resume: continue a training that was killed, from the end of its last epoch.

    Raises:
        InputError: a folder, file or setting is wrong, the memory does not suffice, or the loss diverges.
    """
    state = output / STATE
    identity = _identity(argument, corpus, dev, settings)
    if resume and (state / SETTINGS).exists():
        _check_identity(state / SETTINGS, identity)
    else:
        check_free(output, resume)
    if resume and (state / METRICS).exists() and not (state / CHECKPOINT).exists():
        (state / BEST).unlink(missing_ok=True)
        log.info(f"{output.name}: this training has already ended")
        return
    with (
        locked_for_training(output),
        within_memory("Lower batch_tokens" + ("" if settings.lora_rank else ", or set lora_rank")),
    ):
        run = _begin(argument, corpus, dev, settings, device, identity)
        state.mkdir(exist_ok=True)
        if (state / CHECKPOINT).exists():
            restore(run, state / CHECKPOINT)
            _write_metrics(run, state)
            log.info(f"{output.name}: continuing after epoch {run.progress.epoch}")
        else:
            values = {"model": argument, **msgspec.structs.asdict(settings), "identity": identity}
            write_json(str(state / SETTINGS), values, indent=1)
        with progress_bar(f"finetune {output.name}", run.planned, run.progress.updates, whole=True) as bar:
            while not run.ended:
                _train_epoch(run, bar)
                _finish_epoch(run, state)
        _write_folder(run, Path(parse_options(argument, OPTIONS)[0]), output)
        (state / CHECKPOINT).unlink()
        (state / BEST).unlink()
    log.info(f"{output.name}: perplexity on dev {run.progress.best:.3f} per word, with </s>")


def _identity(argument: str, corpus: ParallelFiles, dev: ParallelFiles, settings: Settings) -> str:
    """Return a digest of everything that determines the result on the same machine.

    Raises:
        InputError: a file cannot be read, or is not a plain file.
    """
    folder, options = parse_options(argument, OPTIONS)
    if not os.path.isdir(folder):
        raise InputError(f"{folder}: no such folder")
    files = visible_files(Path(folder))
    files += [Path(path) for path in (options.template, options.truecaser) if path]
    files += [Path(path) for each in (corpus, dev) for path in each.files]
    content = [argument.partition("[")[2], msgspec.structs.asdict(settings), [digest(path) for path in files]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _check_identity(path: Path, identity: str) -> None:
    """Raise `InputError` if the settings in a folder are those of another training, or damaged."""
    with as_written(path):
        same = json.loads(path.read_bytes())["identity"] == identity
    if not same:
        raise InputError(f"{path}: of another training. The model, the texts or the settings differ")


def _begin(
    argument: str, corpus: ParallelFiles, dev: ParallelFiles, settings: Settings, device_name: str, identity: str
) -> Run:
    """Open the model and encode the texts."""
    folder, options = parse_options(argument, OPTIONS)
    device = find_device(device_name)
    torch.manual_seed(settings.seed)  # initial weights of LoRA
    # Weights, gradients and two moments of AdamW. In a checkpoint, all but gradients are copied to the CPU.
    opened = open_folder(folder, device, torch.float32, copies=1 if settings.lora_rank else 4)
    with readable(folder):
        encoding = Encoding(opened, folder, options)
        network = encoding.network(opened.model)
        with at(f"{folder}: "):
            if not find_abilities(network, encoding.sizes, TOLERANCE).pads:
                raise InputError("cannot be fine-tuned, as padding changes its values")
    model = _with_lora(opened, settings) if settings.lora_rank else opened.model
    pairs, dev_pairs = _encoded(corpus, encoding, "training"), _encoded(dev, encoding, "dev")
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=settings.peak_learning_rate, weight_decay=0.0)
    run = Run(settings, model, network, pairs, dev_pairs, optimizer, 0, identity)
    run.planned = settings.epochs * math.ceil(len(_batches(run, pairs, 0)) / settings.gradient_accumulation)
    warn_of_long_warmup(settings.warmup_updates, run.planned)
    return run


def _with_lora(opened: Opened, settings: Settings) -> Any:
    """Return the model with matrices of LoRA in all linear layers but the output layer. Other weights are fixed."""
    try:
        import peft
    except ImportError:
        raise InputError("lora_rank needs the package peft: pip install 'moses-rerank[lora]'") from None
    task = peft.TaskType.CAUSAL_LM if opened.causal else peft.TaskType.SEQ_2_SEQ_LM
    lora = peft.LoraConfig(
        r=settings.lora_rank, lora_alpha=2 * settings.lora_rank, target_modules="all-linear", task_type=task
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft calls functions that transformers 5 deprecates
        return peft.get_peft_model(opened.model, lora)


def _encoded(files: ParallelFiles, encoding: Encoding, name: str) -> Corpus:
    """Return the tokens of the pairs, without those that are empty or too long."""
    sources = []
    targets = []
    words = 0
    total = 0
    lines = enumerate(parallel_lines(files.source, files.target), start=1)
    while block := list(itertools.islice(lines, BLOCK)):
        total += len(block)
        sentences = [
            Sentence(number, tuple(tokens(one)), (tuple(tokens(two)),), path=files.source)
            for number, (one, two) in block
        ]
        sentences = [each for each in sentences if each.source and each.hypotheses[0]]
        pairs = zip(sentences, encoding.encode_corpus(sentences), strict=True)
        kept = [(each, pair) for each, pair in pairs if pair]
        sources.append(Ragged.of([source for _, (source, _) in kept]))
        targets.append(Ragged.of([target for _, (_, target) in kept]))
        words += sum(len(each.hypotheses[0]) + 1 for each, _ in kept)
    if not words:
        raise InputError(f"{files.source}: no sentence pair that can be used for {name}")
    corpus = Corpus(Ragged.joined(sources), Ragged.joined(targets), words)
    if left_out := total - len(corpus.sources):
        log.warning(f"{files.source}: {left_out:,} of {total:,} pairs are empty or too long")
    return corpus


def _batches(run: Run, corpus: Corpus, epoch: int) -> list[list[int]]:
    """Return the batches of an epoch, whose order its number and the seed determine."""
    source, target = corpus.sources.lengths, corpus.targets.lengths  # (N,) each
    size = source + target if isinstance(run.network, Causal) else np.maximum(source, target)  # (N,)
    lengths = np.stack([source, size - 1], axis=1)  # (N, 2), to which `bucketed` adds 1
    return bucketed(lengths, 0, run.settings.batch_tokens, random.Random(f"{run.settings.seed} {epoch}"))


def _train_epoch(run: Run, bar: Bar) -> None:
    """Train for one epoch."""
    settings = run.settings
    progress = run.progress
    started = time.monotonic()
    progress.epoch += 1
    # A number for each epoch makes the checkpoint independent of the state of the generator.
    torch.manual_seed(settings.seed * 100_000 + progress.epoch)
    run.model.train()
    loss, count = 0.0, 0
    batches = _batches(run, run.corpus, progress.epoch)
    for first in range(0, len(batches), settings.gradient_accumulation):
        group = [run.corpus.pairs(batch) for batch in batches[first : first + settings.gradient_accumulation]]
        size = sum(len(target) for batch in group for _, target in batch)
        step = _update(run, group, size)
        _check_finite(run, step)
        loss, count = loss + step, count + size
        speed = count / (time.monotonic() - started)
        bar.advance(1, f"{speed:,.0f} tokens/s, loss {step / size:.3f}")
    progress.seconds += time.monotonic() - started
    row = {"epoch": progress.epoch, "updates": progress.updates, "train_loss": loss / count}
    progress.rows.append(row | {"tokens_per_second": speed})


def _update(run: Run, batches: list[list[Pair]], count: int) -> float:
    """Take one optimizer step on batches with `count` target tokens. Return their loss in nats, without smoothing."""
    settings = run.settings
    updates = run.progress.updates
    total = 0.0
    run.optimizer.zero_grad()
    for batch in batches:
        smoothed, plain = _losses(run, batch, settings.label_smoothing)
        if smoothed.requires_grad:  # not if layerdrop leaves out all layers with LoRA
            (smoothed / count).backward()  # type: ignore[no-untyped-call]
        total += float(plain)
    nn.utils.clip_grad_norm_(list(run.weights.values()), settings.clip_norm)
    warmup = warmed_up(updates, settings.warmup_updates)
    for group in run.optimizer.param_groups:
        group["lr"] = settings.peak_learning_rate * warmup * (1 - 0.9 * min(1.0, updates / run.planned))
    run.optimizer.step()
    run.progress.updates += 1
    return total


def _losses(run: Run, pairs: list[Pair], smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy of the targets in nats, with and without label smoothing, () each."""
    device = run.network.device
    with torch.autocast(device.type, torch.bfloat16, enabled=run.model.training and multiplies_bfloat16(device)):
        logits, targets, mask = logits_of(run.network, pairs)  # (n, L, V), (n, L), (n, L)
    real = mask.bool()  # (n, L)
    log_probs, targets = logits[real].float().log_softmax(dim=-1), targets[real]  # (tokens, V), (tokens,)
    plain = functional.nll_loss(log_probs, targets, reduction="sum")  # ()
    if not smoothing:
        return plain, plain.detach()
    return (1 - smoothing) * plain - smoothing * log_probs.mean(dim=-1).sum(), plain.detach()


def _check_finite(run: Run, loss: float) -> None:
    """Raise `InputError` if a loss is not finite."""
    if not math.isfinite(loss):
        hint = "Try a smaller learning_rate, in another folder"
        raise InputError(f"the loss diverged within {run.progress.updates} updates. {hint}")


def _dev_perplexity(run: Run) -> float:
    """Return the perplexity per word of dev, in float32 as feature `hf`."""
    run.model.eval()
    loss = 0.0
    with torch.inference_mode():
        for batch in _batches(run, run.dev, 0):
            loss += float(_losses(run, run.dev.pairs(batch), 0.0)[1])
    _check_finite(run, loss)
    return perplexity(loss / run.dev.words)


def _finish_epoch(run: Run, state: Path) -> None:
    """Evaluate on dev, save the weights if they are the best so far, and write the checkpoint."""
    progress, value = run.progress, _dev_perplexity(run)
    better = progress.best is None or value < progress.best
    progress.best, progress.stale = (value, 0) if better else (progress.best, progress.stale + 1)
    row = progress.rows[-1]
    row |= {"dev_perplexity": value, "seconds": progress.seconds, "best": better}
    if better:
        save_weights(run, state / BEST)
    save(run, state / CHECKPOINT)
    _write_metrics(run, state)
    log.info(
        f"epoch {progress.epoch}: loss {row['train_loss']:.3f}, perplexity on dev {value:.3f}"
        f"{' (best)' if better else ''}, {row['tokens_per_second']:,.0f} tokens/s, {progress.seconds:.0f} s"
    )


def _write_metrics(run: Run, state: Path) -> None:
    write_json_lines(str(state / METRICS), run.progress.rows)


def _write_folder(run: Run, base: Path, output: Path) -> None:
    """Write the best weights, with the configuration and the tokenizer of the base model.

    Raises:
        InputError: writing fails.
    """
    load_weights(run, output / STATE / BEST)
    model = run.model.merge_and_unload() if run.settings.lora_rank else run.model
    new = output / STATE / NEW
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        for path in visible_files(base):
            if not path.name.endswith(WEIGHTS):
                shutil.copyfile(path, new / path.name)
        with without_bars():
            model.save_pretrained(new)
    except (OSError, safetensors.SafetensorError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{output}: cannot be written ({reason}). Continue with --resume") from None
    for path in new.iterdir():
        os.replace(path, output / path.name)
    new.rmdir()
