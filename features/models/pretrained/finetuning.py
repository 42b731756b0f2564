"""Fine-tuning of pretrained models on a parallel corpus, of all weights or with LoRA."""

import hashlib
import json
import math
import random
import shutil
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from features.feature import Sentence
from features.models.batches import bucketed
from features.models.device import find_device, multiplies_bfloat16, within_memory
from features.models.folder import check_free, held
from features.models.pretrained.encoding import Encoding, Pair
from features.models.pretrained.folder import Opened, open_folder, readable, without_bars
from features.models.pretrained.network import Causal, Network, Seq2Seq
from features.models.pretrained.options import parse_options
from features.models.pretrained.prefixes import logits_of
from features.models.training.checkpoint import read_tensors, write_tensors
from features.progress import Bar, log, progress_bar
from moses_io.files.errors import InputError, nearest, shown
from moses_io.files.json_files import as_written
from moses_io.files.streams import digest, open_output
from moses_io.files.text import ParallelFiles, parallel_lines, tokens

STATE = "finetuning"
"""Subfolder of the output with the metrics, and with the checkpoint and the best weights until the training ends."""

METRICS, CHECKPOINT, BEST = "metrics.jsonl", "checkpoint.safetensors", "best.safetensors"

WEIGHTS = (".safetensors", ".bin", ".index.json", ".h5", ".msgpack", ".ot", ".pt", ".pth", ".onnx", ".gguf")
"""Ends of the names of files with weights, in the formats of all libraries."""

OPTIONS = ("text", "language", "template", "truecaser")
"""Options of feature `hf` that a training has."""

BLOCK = 1024
"""Number of pairs that are encoded together."""

Positive = Annotated[int, msgspec.Meta(ge=1)]
Whole = Annotated[int, msgspec.Meta(ge=0)]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of a fine-tuning.

    Attributes:
        epochs: maximum number of epochs.
        learning_rate: highest learning rate of AdamW (default: 3e-5, with LoRA 3e-4).
        batch_tokens: maximum number of target tokens in a batch, with padding.
        gradient_accumulation: number of batches in an update.
        warmup_updates: updates in which the learning rate rises. It then falls linearly to a tenth.
        label_smoothing: probability that is distributed over all tokens.
        clip_norm: maximum norm of the gradient.
        patience: number of epochs without a better perplexity of dev after which the training ends.
        lora_rank: rank of LoRA's matrices (Hu et al. 2022) in all linear layers, or 0 to train all weights.
        seed: random seed of dropout, of the order of batches, and of LoRA's initial weights.
    """

    epochs: Positive = 3
    learning_rate: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    batch_tokens: Positive = 2000
    gradient_accumulation: Positive = 1
    warmup_updates: Whole = 100
    label_smoothing: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.1
    clip_norm: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    patience: Positive = 2
    lora_rank: Whole = 0
    seed: Whole = 1

    @property
    def rate(self) -> float:
        """The highest learning rate."""
        return self.learning_rate or (3e-4 if self.lora_rank else 3e-5)


def parse_settings(texts: dict[str, str]) -> Settings:
    """Return settings given as text. Raises `InputError` if a name is unknown or a value is wrong."""
    names = list(Settings.__struct_fields__)
    for name in texts:
        if name not in names:
            raise InputError(f"unknown setting {shown(name)}{nearest(name, names)}")
    try:
        return msgspec.convert(texts, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"--set: {error}") from None


class Progress(msgspec.Struct, forbid_unknown_fields=True):
    """Progress of a training.

    Attributes:
        epoch: number of epochs.
        updates: number of optimizer steps.
        best: lowest perplexity of dev, or None before the first epoch.
        stale: epochs since the best one.
        seconds: training time.
        rows: metrics of each epoch.
    """

    epoch: Whole = 0
    updates: Whole = 0
    best: float | None = None
    stale: Whole = 0
    seconds: float = 0.0
    rows: list[dict[str, Any]] = []


@dataclass
class Run:
    """A training in progress.

    Attributes:
        settings: its settings.
        model: the model of transformers, with LoRA's layers if any.
        network: its network.
        corpus: tokens of the training pairs.
        dev: tokens of the dev pairs.
        words: number of words of the dev targets, with an end of sentence each.
        optimizer: AdamW over the trained weights.
        planned: number of updates in all epochs.
        identity: digest of everything that determines the result.
        progress: progress so far.
    """

    settings: Settings
    model: Any
    network: Network
    corpus: list[Pair]
    dev: list[Pair]
    words: int
    optimizer: torch.optim.Optimizer
    planned: int
    identity: str
    progress: Progress = field(default_factory=Progress)

    @property
    def weights(self) -> dict[str, nn.Parameter]:
        """The trained weights by name."""
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    @property
    def ended(self) -> bool:
        """Whether no epoch is left."""
        return self.progress.epoch >= self.settings.epochs or self.progress.stale >= self.settings.patience


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
    if resume and (state / METRICS).exists() and not (state / CHECKPOINT).exists():
        log.info(f"{output.name}: this training has already ended")
        return
    if not (resume and (state / CHECKPOINT).exists()):
        check_free(output, resume)
    with held(output), within_memory("Lower batch_tokens, or set lora_rank"):
        run = _begin(argument, corpus, dev, settings, device)
        state.mkdir(exist_ok=True)
        if (state / CHECKPOINT).exists():
            _restore(run, state / CHECKPOINT)
            log.info(f"{output.name}: continuing after epoch {run.progress.epoch}")
        else:
            _save(run, state / CHECKPOINT)
        with progress_bar(f"finetune {output.name}", run.planned, run.progress.updates, whole=True) as bar:
            while not run.ended:
                _train_epoch(run, bar)
                _finish_epoch(run, state)
        _write_folder(run, Path(parse_options(argument, OPTIONS)[0]), output)
        (state / CHECKPOINT).unlink()
        (state / BEST).unlink()
    log.info(f"{output.name}: perplexity on dev {run.progress.best:.3f} per word, with </s>")


def _begin(argument: str, corpus: ParallelFiles, dev: ParallelFiles, settings: Settings, device: str) -> Run:
    """Open the model and encode the texts."""
    folder, options = parse_options(argument, OPTIONS)
    place = find_device(device)
    torch.manual_seed(settings.seed)  # initial weights of LoRA
    # The weights, their gradients and two moments of AdamW.
    opened = open_folder(folder, place, torch.float32, copies=1 if settings.lora_rank else 4)
    with readable(folder):
        encoding = Encoding(opened, folder, options)
        network: Network = Causal(opened.model) if opened.causal else Seq2Seq(opened.model, encoding.target_of(""))
    model = _with_lora(opened, settings) if settings.lora_rank else opened.model
    pairs, _ = _encoded(corpus, encoding, "training")
    known, words = _encoded(dev, encoding, "dev")
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=settings.rate, weight_decay=0.0)
    updates = math.ceil(len(_batches(pairs, settings, 0)) / settings.gradient_accumulation)
    files = [path for part in (folder, options.template, options.truecaser) if part for path in _plain(Path(part))]
    files += [Path(path) for each in (corpus, dev) for path in each.files]
    content = [argument.partition("[")[2], msgspec.structs.asdict(settings), [digest(path) for path in files]]
    identity = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return Run(settings, model, network, pairs, known, words, optimizer, settings.epochs * updates, identity)


def _plain(path: Path) -> list[Path]:
    """Return a file, or the files of a folder that are not hidden."""
    files = [each for each in sorted(path.iterdir()) if each.is_file()] if path.is_dir() else [path]
    return [each for each in files if not each.name.startswith(".")]


def _with_lora(opened: Opened, settings: Settings) -> Any:
    """Return the model with matrices of LoRA in all linear layers but the output layer. Other weights are fixed."""
    try:
        import peft
    except ImportError:
        raise InputError("lora_rank needs the package peft: pip install moses-rerank[lora]") from None
    task = peft.TaskType.CAUSAL_LM if opened.causal else peft.TaskType.SEQ_2_SEQ_LM
    lora = peft.LoraConfig(
        r=settings.lora_rank, lora_alpha=2 * settings.lora_rank, target_modules="all-linear", task_type=task
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft calls functions that transformers 5 deprecates
        return peft.get_peft_model(opened.model, lora)


def _encoded(files: ParallelFiles, encoding: Encoding, name: str) -> tuple[list[Pair], int]:
    """Return the tokens of the pairs, without those that are empty or too long, and their number of target words."""
    texts = [(tokens(source), tokens(target)) for source, target in parallel_lines(files.source, files.target)]
    sentences = [
        Sentence(number, tuple(source), (tuple(target),))
        for number, (source, target) in enumerate(texts)
        if source and target
    ]
    pairs, words = [], 0
    for start in range(0, len(sentences), BLOCK):
        block = sentences[start : start + BLOCK]
        for each, pair in zip(block, encoding.pairs(block), strict=True):
            if pair:
                pairs.append(pair)
                words += len(each.hypotheses[0]) + 1
    if not pairs:
        raise InputError(f"{files.source}: no sentence pair that can be used for {name}")
    if len(pairs) < len(texts):
        log.warning(f"{files.source}: {len(texts) - len(pairs):,} of {len(texts):,} pairs are empty or too long")
    return pairs, words


def _batches(pairs: Sequence[Pair], settings: Settings, epoch: int) -> list[list[int]]:
    """Return the batches of an epoch, whose order its number and the seed determine."""
    lengths = np.array([(len(source), len(target)) for source, target in pairs], dtype=np.int64)  # (N, 2)
    return bucketed(lengths, 0, settings.batch_tokens, random.Random(f"{settings.seed} {epoch}"))


def _train_epoch(run: Run, bar: Bar) -> None:
    """Train for one epoch."""
    settings, progress, started = run.settings, run.progress, time.monotonic()
    progress.epoch += 1
    # A number for each epoch makes the checkpoint independent of the state of the generator.
    torch.manual_seed(settings.seed * 100_000 + progress.epoch)
    run.model.train()
    loss, tokens = 0.0, 0
    batches = _batches(run.corpus, settings, progress.epoch)
    for first in range(0, len(batches), settings.gradient_accumulation):
        group = [
            [run.corpus[number] for number in batch]
            for batch in batches[first : first + settings.gradient_accumulation]
        ]
        count = sum(len(target) for batch in group for _, target in batch)
        step = _update(run, group, count)
        if not math.isfinite(step):
            raise InputError(f"the loss diverged within {progress.updates} updates. Try a smaller learning_rate")
        loss, tokens = loss + step, tokens + count
        speed = tokens / (time.monotonic() - started)
        bar.advance(1, f"{speed:,.0f} tokens/s, loss {step / count:.3f}")
    progress.seconds += time.monotonic() - started
    row = {
        "epoch": progress.epoch,
        "updates": progress.updates,
        "train_loss": loss / tokens,
        "tokens_per_second": speed,
    }
    progress.rows.append(row)


def _update(run: Run, batches: Sequence[Sequence[Pair]], count: int) -> float:
    """Take one optimizer step on batches with `count` target tokens. Return their loss in nats, without smoothing."""
    settings, total = run.settings, 0.0
    run.optimizer.zero_grad()
    for batch in batches:
        smoothed, plain = _losses(run, batch, settings.label_smoothing)
        if smoothed.requires_grad:  # not if layerdrop leaves out all layers with LoRA
            (smoothed / count).backward()  # type: ignore[no-untyped-call]
        total += float(plain)
    nn.utils.clip_grad_norm_(list(run.weights.values()), settings.clip_norm)
    risen = min(1.0, (run.progress.updates + 1) / settings.warmup_updates) if settings.warmup_updates else 1.0
    for group in run.optimizer.param_groups:
        group["lr"] = settings.rate * risen * (1 - 0.9 * min(1.0, run.progress.updates / run.planned))
    run.optimizer.step()
    run.progress.updates += 1
    return total


def _losses(run: Run, pairs: Sequence[Pair], smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy of the targets in nats, with and without label smoothing, () each."""
    device = run.network.device
    with torch.autocast(device.type, torch.bfloat16, enabled=multiplies_bfloat16(device)):
        logits, targets, mask = logits_of(run.network, pairs)  # (n, L, V), (n, L), (n, L)
    # (tokens, V), without padding
    kept, wanted = logits[mask.bool()].float(), targets[mask.bool()]
    plain = functional.cross_entropy(kept, wanted, reduction="sum")
    if not smoothing:
        return plain, plain.detach()
    return functional.cross_entropy(kept, wanted, reduction="sum", label_smoothing=smoothing), plain.detach()


def _perplexity(run: Run) -> float:
    """Return the perplexity per word of dev."""
    run.model.eval()
    loss = 0.0
    with torch.inference_mode():
        for batch in _batches(run.dev, run.settings, 0):
            loss += float(_losses(run, [run.dev[number] for number in batch], 0.0)[1])
    return math.exp(min(loss / run.words, 700.0))


def _finish_epoch(run: Run, state: Path) -> None:
    """Evaluate on dev, save the weights if they are the best so far, and write the checkpoint."""
    progress, perplexity = run.progress, _perplexity(run)
    better = progress.best is None or perplexity < progress.best
    progress.best, progress.stale = (perplexity, 0) if better else (progress.best, progress.stale + 1)
    progress.rows[-1] |= {"dev_perplexity": perplexity, "seconds": progress.seconds, "best": better}
    if better:
        write_tensors(state / BEST, "", _copied(run.weights))
    with open_output(str(state / METRICS)) as stream:
        stream.writelines(json.dumps(row).encode() + b"\n" for row in progress.rows)
    _save(run, state / CHECKPOINT)
    loss = progress.rows[-1]["train_loss"]
    log.info(
        f"epoch {progress.epoch}: loss {loss:.3f}, perplexity on dev {perplexity:.3f}{' (best)' if better else ''}, "
        f"{progress.rows[-1]['tokens_per_second']:,.0f} tokens/s, {progress.seconds:.0f} s"
    )


def _copied(weights: dict[str, nn.Parameter]) -> dict[str, Tensor]:
    return {name: weight.detach().cpu().clone() for name, weight in weights.items()}


def _save(run: Run, path: Path) -> None:
    """Write everything that determines how the training continues."""
    tensors = {f"weight.{name}": weight for name, weight in _copied(run.weights).items()}
    for number, state in run.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": tensor.cpu().contiguous() for name, tensor in state.items()}
    text = json.dumps({"identity": run.identity, "progress": msgspec.structs.asdict(run.progress)})
    write_tensors(path, text, tensors)


def _restore(run: Run, path: Path) -> None:
    """Continue from a checkpoint.

    Raises:
        InputError: the file is damaged, or belongs to another training.
    """
    text, tensors = read_tensors(path)
    with as_written(path):
        saved = json.loads(text)
        if saved["identity"] != run.identity:
            raise InputError(f"{path}: of another training. The model, the texts or the settings differ")
        run.progress = msgspec.convert(saved["progress"], Progress)
    _load(run, {name.removeprefix("weight."): each for name, each in tensors.items() if name.startswith("weight.")})
    states: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            states.setdefault(int(number), {})[key] = tensor
    groups = run.optimizer.state_dict()["param_groups"]
    run.optimizer.load_state_dict({"state": states, "param_groups": groups})


def _load(run: Run, tensors: dict[str, Tensor]) -> None:
    """Set the trained weights."""
    with torch.no_grad():
        for name, weight in run.weights.items():
            weight.copy_(tensors[name])


def _write_folder(run: Run, base: Path, output: Path) -> None:
    """Write the best weights, with the configuration and the tokenizer of the base model."""
    _, tensors = read_tensors(output / STATE / BEST)
    _load(run, tensors)
    model = run.model.merge_and_unload() if run.settings.lora_rank else run.model
    for path in _plain(base):
        if not path.name.endswith(WEIGHTS):
            shutil.copyfile(path, output / path.name)
    with without_bars():
        model.save_pretrained(output)
