"""Program that scores candidates with a COMET model: `python program.py MODEL ENCODER DEVICE`.

It runs in the environment of the package unbabel-comet, whose dependencies exclude those of this package, so it imports
nothing else from here. It reads lines `source TAB candidate` with an empty line after each list, and prints a line with
the score of each candidate. The text is natural text, not tokenized.

A model that needs no reference scores each candidate with its source (quality estimation). For a regression metric, the
references of a candidate are the other candidates of its list, and its score is the mean over them, as in `comet-mbr`.
"""

import contextlib
import inspect
import pickle
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml

KINDS = ("regression_metric", "referenceless_regression_metric", "unified_metric", "xcomet_metric")
"""Classes of COMET that can score candidates without a reference, or with each other as references."""

BATCH = 32
"""Maximum number of texts that the encoder reads at once."""


def main() -> None:
    """Answer list after list until stdin ends."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise SystemExit("torch 2.6 or later is needed: in older versions a checkpoint can run code (CVE-2025-32434)")
    folder, encoder, device = sys.argv[1:]
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # libraries may print
        try:
            model = load(Path(folder), encoder, device)
        except Exception as error:  # libraries raise many types
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            raise SystemExit(kind + " ".join(str(error).split())) from None
    lines: list[str] = []
    for line in sys.stdin:
        if line != "\n":
            lines.append(line.removesuffix("\n"))
            continue
        sources, candidates = zip(*(each.split("\t", 1) for each in lines), strict=True)
        with contextlib.redirect_stdout(sys.stderr), torch.inference_mode():
            scores = score(model, sources[0], candidates)
        print("\n".join(map(repr, scores)), file=answers, flush=True)
        lines = []


def load(folder: Path, encoder: str, device: str) -> Any:
    """Return the model of a folder that COMET's `download_model` makes, with the encoder of a local folder.

    The encoder's weights are part of the checkpoint. Its folder has the tokenizer and `config.json`.
    """
    from comet.models import str2model

    settings = yaml.safe_load((folder / "hparams.yaml").read_text())
    name = settings.get("class_identifier") if isinstance(settings, dict) else None
    if name not in KINDS:
        raise ValueError(f"hparams.yaml: class_identifier {name!r}, expected one of {', '.join(KINDS)}")
    try:
        saved = torch.load(folder / "checkpoints" / "model.ckpt", map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError("checkpoints/model.ckpt is damaged, or has objects that could run code when read") from None
    given = settings | saved.get("hyper_parameters", {})  # in the order of COMET's `load_from_checkpoint`
    if given.get("encoder_model") == "MiniLM":  # COMET reads its tokenizer from a fixed place
        raise ValueError("models with a MiniLM encoder are not supported")
    kind = str2model[name]
    changed = {"pretrained_model": encoder, "load_pretrained_weights": False, "local_files_only": True}
    if settings.get("layer_transformation") == "sparsemax_patch":  # COMET reads it as softmax since 2.2.4
        changed["layer_transformation"] = "softmax"
    model = kind(**{name: value for name, value in (given | changed).items() if name in accepted(kind)})
    missing, _ = model.load_state_dict(saved["state_dict"], strict=False)
    if missing:
        raise ValueError(f"the checkpoint has no weights {missing[0]}. Is it a model with this encoder?")
    if name != "regression_metric" and model.requires_references():
        raise ValueError("this model needs references, and is not a regression metric")
    return model.to(device).eval()


def accepted(kind: Any) -> set[str]:
    """Return the names of the parameters of a class."""
    return set(inspect.signature(kind.__init__).parameters) - {"self"}


def score(model: Any, source: str, candidates: Sequence[str]) -> list[float]:
    """Return the score of each candidate of a list."""
    distinct = sorted(set(candidates), key=lambda text: (len(text), text))  # similar lengths need little padding
    if model.requires_references():
        values = expected(
            model, embedded(model, [source]), embedded(model, distinct), occurrences(candidates, distinct)
        )
    else:
        values = torch.cat([estimated(model, source, batch) for batch in batches(distinct)])  # (N,)
    by_text = dict(zip(distinct, values.tolist(), strict=True))
    return [by_text[text] for text in candidates]


def estimated(model: Any, source: str, candidates: Sequence[str]) -> torch.Tensor:
    """Return the quality estimation (N,) of candidates."""
    samples = [{"src": source, "mt": text} for text in candidates]
    prepared = model.prepare_sample(samples, stage="predict")
    if isinstance(prepared, tuple):  # inputs with and without a reference, here without
        scores: torch.Tensor = model.predict_step((on(model, prepared[0]),)).scores
    else:
        scores = model.predict_step(on(model, prepared)).scores
    return scores.view(-1).float()


def occurrences(candidates: Sequence[str], distinct: Sequence[str]) -> torch.Tensor:
    """Return (N,) how often each distinct candidate occurs in the list."""
    counts = dict.fromkeys(distinct, 0)
    for text in candidates:
        counts[text] += 1
    return torch.tensor(list(counts.values()), dtype=torch.float64)


def expected(model: Any, source: torch.Tensor, texts: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Return the mean score (N,) of each candidate with all others as references.

    Args:
        model: a regression metric.
        source: (1, d) embedding of the source.
        texts: (N, d) embeddings of the distinct candidates.
        counts: (N,) number of occurrences of each.
    """
    total = counts.sum()
    means = []
    for number, text in enumerate(texts):
        same = text.expand(len(texts), -1)  # (N, d)
        scores = model.estimate(source.expand(len(texts), -1), same, texts).score.double().cpu()  # (N,)
        others = counts.clone()
        if total > 1:  # a single candidate is its own reference
            others[number] -= 1
        means.append((scores * others).sum() / others.sum())
    return torch.stack(means)  # (N,)


def embedded(model: Any, texts: Sequence[str]) -> torch.Tensor:
    """Return embeddings (N, d)."""
    parts = []
    for batch in batches(texts):
        inputs = on(model, model.encoder.prepare_sample(list(batch)))
        parts.append(model.get_sentence_embedding(inputs["input_ids"], inputs["attention_mask"]))
    return torch.cat(parts)  # (N, d)


def on(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return inputs with all tensors on the device of the model. XCOMET also has inputs that are no tensors."""
    return {name: each.to(model.device) if isinstance(each, torch.Tensor) else each for name, each in inputs.items()}


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield parts of at most `BATCH` texts."""
    for start in range(0, len(texts), BATCH):
        yield texts[start : start + BATCH]


if __name__ == "__main__":
    main()
