"""Altered folders of models and rerankers."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from case import ERROR, SUCCESS_OR_ERROR, Case
from valid import SMALL, train_files

VALUES: tuple[tuple[str, Any], ...] = (
    ("hidden_size", 60000),
    ("hidden_size", 0),
    ("hidden_size", -8),
    ("hidden_size", 8.5),
    ("hidden_size", "8x"),
    ("hidden_size", True),
    ("hidden_size", None),
    ("hidden_size", 10**30),
    ("hidden_size", 16),
    ("decoder_layers", 2147483647),
    ("decoder_layers", 2),
    ("encoder_layers", 2147483647),
    ("embedding_size", 65535),
    ("attention_size", 10**9),
    ("cell", "evil"),
    ("cell", ["lstm"]),
    ("cell", "gru"),
    ("encoder", "unidirectional"),
    ("decoder", "no-attention"),
    ("attention_terms", "markov"),
    ("attention_terms", ["evil"]),
    ("attention_terms", [["markov"]]),
    ("attention_terms", {}),
    ("objectives", ["fertility"]),
    ("window_radius", 10**12),
    ("max_positions", 10**12),
    ("memory_size", 10**12),
    ("fertility_size", 10**12),
    ("attend_bos_eos", "maybe"),
    ("bias", 7),
    ("evil", 1),
)
TOP: tuple[tuple[str, Any], ...] = (
    ("direction", "sideways"),
    ("direction", None),
    ("direction", ["forward"]),
    ("right_to_left", "no"),
    ("right_to_left", 1),
    ("format", 99),
    ("format", "3"),
    ("format", None),
    ("preset", None),
    ("preset", "\x1b[31m"),
    ("preset", {}),
    ("partner", 3),
    ("partner", "../../../etc"),
    ("corpus", 3),
    ("architecture", None),
    ("architecture", []),
    ("training", None),
    ("training", "x"),
    ("training", {"epochs": -1}),
    ("evil", 1),
)
CONFIGS = {
    "empty": b"",
    "null": b"null",
    "list": b"[]",
    "number": b"1",
    "deep": b"[" * 200_000,
    "deep objects": b'{"a":' * 100_000,
    "NUL": b"\0" * 100,
    "binary": bytes(range(256)),
    "digits": b'{"format": ' + b"9" * 6000 + b"}",
    "cut": b'{"format": 3, "arch',
    "not UTF-8": b'{"format": "\xff"}',
    "NaN": b'{"format": NaN}',
    "large": b" " * 100_000_000,
}


def model_cases(valid: Path) -> Iterator[Case]:
    """Yield a case for each altered model folder and each wrong checkpoint."""
    files = {path.name: path.read_bytes() for path in (valid / "forward").iterdir() if path.is_file()}
    altered = dict(_altered(files))
    for name, parts in altered.items():
        yield _case(valid, f"model {name}", parts)
    for name in ("hidden_size=60000", "decoder_layers=2147483647", "config deep", "header of 10^15", "weights cut"):
        yield _case(valid, f"start {name}", altered[name], start=True)
    yield Case("model is a loop", _score(valid), {"model": "model"})
    yield Case("config is zeros", _score(valid), _placed(files) | {"model/config.json": "/dev/zero"})
    yield Case("weights are zeros", _score(valid), _placed(files) | {"model/model.safetensors": "/dev/zero"})
    yield Case("vocabulary is a folder", _score(valid), _placed(files) | {"model/source.vocabulary": "/"})
    for name, content in (
        ("empty", b""),
        ("text", b"x" * 999),
        ("header", struct.pack("<Q", 10**15)),
        ("weights", files["model.safetensors"]),
    ):
        arguments = (
            "train",
            "--preset",
            "rnnsearch",
            *train_files(valid),
            "--output",
            "model",
            "--resume",
            "--set",
            *SMALL,
        )
        yield Case(
            f"checkpoint {name}",
            arguments,
            _placed(files) | {"model/training.safetensors": content},
            statuses=SUCCESS_OR_ERROR,
        )


def reranker_cases(valid: Path) -> Iterator[Case]:
    """Yield a case for each altered folder of a reranker."""
    folder = valid / "reranker"
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    manifest = json.loads(files["reranker.json"])
    changes: dict[str, Any] = {"format": 99, "features": {"Len": 3}, "files": {"weights.ini": "0"}, "tuned": None}
    for text in ("evil:X", "neural:..", "kenlm:/etc/passwd", "command:id", "scores:x"):
        changes[f"features {text}"] = {"Len": text}
    altered = {name: json.dumps(manifest | {name.split(" ")[0]: value}).encode() for name, value in changes.items()}
    for name, content in (altered | CONFIGS).items():
        yield _apply(valid, f"reranker {name}", files | {"reranker.json": content})
    for name, content in files.items():
        yield _apply(valid, f"reranker without {name}", {key: files[key] for key in files if key != name})
        if name != "reranker.json":
            yield _apply(valid, f"reranker with another {name}", files | {name: content + b"x"})


def _apply(valid: Path, name: str, files: dict[str, bytes]) -> Case:
    arguments = ("apply", "model", f"{valid}/nbest", "--source", f"{valid}/dev.de", "--output", "out")
    return Case(name, arguments, _placed(files))


def _altered(files: dict[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    config, weights, words = json.loads(files["config.json"]), files["model.safetensors"], files["source.vocabulary"]
    for key, value in VALUES:
        part = config | {"architecture": config["architecture"] | {key: value}}
        yield f"{key}={value}", files | {"config.json": json.dumps(part).encode()}
    for key, value in TOP:
        yield f"top {key}={value}", files | {"config.json": json.dumps(config | {key: value}).encode()}
    for key in config:
        if key not in ("right_to_left", "partner", "corpus"):
            part = {name: value for name, value in config.items() if name != key}
            yield f"no {key}", files | {"config.json": json.dumps(part).encode()}
    for name, content in CONFIGS.items():
        yield f"config {name}", files | {"config.json": content}
    for name in ("config.json", "model.safetensors", "source.vocabulary", "target.vocabulary"):
        yield f"without {name}", {key: content for key, content in files.items() if key != name}
    length = struct.unpack("<Q", weights[:8])[0]
    header = weights[8 : 8 + length]
    yield from (
        (f"weights {name}", files | {"model.safetensors": content})
        for name, content in {
            "empty": b"",
            "cut": weights[:-100],
            "longer": weights + b"x",
            "text": b"evil" * 999,
            "header alone": weights[: 8 + length],
            "no header": weights[8:],
            "of nothing": struct.pack("<Q", 2) + b"{}",
            "deep": struct.pack("<Q", 100_000) + b"[" * 100_000,
            "other dtype": weights.replace(b"F32", b"F16", 1),
            "other names": weights.replace(b"weight", b"w3ight", 1),
            "nan": weights[:-4] + b"\0\0\xc0\x7f",
        }.items()
    )
    yield "header of 10^15", files | {"model.safetensors": struct.pack("<Q", 10**15) + header}
    huge = json.dumps({"a": {"dtype": "F32", "shape": [10**15], "data_offsets": [0, 4 * 10**15]}}).encode()
    yield "tensor of 10^15", files | {"model.safetensors": struct.pack("<Q", len(huge)) + huge}
    lines = words.split(b"\n")
    for name, content in {
        "CRLF": words.replace(b"\n", b"\r\n"),
        "empty": b"",
        "short": b"\n".join(lines[:9]) + b"\n",
        "long": words + b"more\n",
        "twice": words.replace(lines[-2], lines[-3]),
        "blank": words.replace(lines[-2], b""),
        "not UTF-8": words.replace(lines[-2], b"\xff"),
        "other order": b"\n".join(reversed(lines)),
        "binary": bytes(range(256)),
        "line of 12 MB": b"x" * 12_000_000,
        "blank in a word": words.replace(lines[-2], b"a b"),
    }.items():
        yield f"vocabulary {name}", files | {"source.vocabulary": content}


def _case(valid: Path, name: str, files: dict[str, bytes], start: bool = False) -> Case:
    train = (
        "train",
        "--preset",
        "rnnsearch",
        *train_files(valid),
        "--output",
        "out",
        "--pretrained-model",
        "model",
        "--set",
        *SMALL,
    )
    odd = name in (
        "model weights nan",
        "model vocabulary not UTF-8",
        "model vocabulary other order",
        "model top preset=\x1b[31m",
        "model top partner=../../../etc",
        "model top preset={}",
    )
    return Case(name, train if start else _score(valid), _placed(files), statuses=SUCCESS_OR_ERROR if odd else ERROR)


def _placed(files: dict[str, bytes]) -> dict[str, bytes | str]:
    return {f"model/{name}": content for name, content in files.items()}


def _score(valid: Path) -> tuple[str, ...]:
    return ("score", f"{valid}/nbest", "--source", f"{valid}/dev.de", "--feature", "neural:model", "--output", "out")
