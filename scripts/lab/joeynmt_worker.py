"""Translate with JoeyNMT's beam search for `scripts/lab/bench_translation`, in a separate environment.

JoeyNMT 2.3 requires `importlib_metadata`, which newer Pythons have as `importlib.metadata`. The one argument is a
folder with `job.json` and `NAME.npz`, from which the networks are read. For each line `NAME BEAM` on stdin, the script
prints a line of JSON with the CPU time in seconds and the token IDs of each translation.
"""

import importlib.metadata
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

sys.modules.setdefault("importlib_metadata", importlib.metadata)

from joeynmt.batch import Batch  # noqa: E402
from joeynmt.model import Model, build_model  # noqa: E402
from joeynmt.search import search  # noqa: E402
from joeynmt.vocabulary import Vocabulary  # noqa: E402

PADDING, UNKNOWN, BEGIN, END = range(4)
BATCH = {1: 64, 12: 32}
"""Sentences per batch, by beam size: the fastest of 4, 8, 16, 32 and 64."""


def vocabulary(size: int) -> Vocabulary:
    """Return a vocabulary of `size` words, with our IDs for the first four."""
    names = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "sep_token": None}
    numbers = {"unk_id": 0, "pad_id": 1, "bos_id": BEGIN, "eos_id": END}
    made = Vocabulary([], SimpleNamespace(lang_tags=[], **names, **numbers))
    made._itos += [str(number) for number in range(4, size)]
    made.pad_index, made.unk_index = PADDING, UNKNOWN
    return made


def load(folder: Path, name: str, network: dict, sizes: list[int]) -> Model:
    """Build a network with random weights and an output bias, and load the weights of the file, if any."""
    model = build_model(network, *(vocabulary(size) for size in sizes)).eval()
    model.decoder.output_layer.bias = torch.nn.Parameter(torch.zeros(sizes[1]))
    with np.load(folder / f"{name}.npz") as weights:
        known = {key: torch.from_numpy(weights[key]) for key in weights.files}
    missing, unexpected = model.load_state_dict(known, strict=False)
    assert not unexpected and not (missing and known), (missing, unexpected)
    return model


def translate(model: Model, sources: list[list[int]], steps: int, size: int) -> list[list[int]]:
    """Translate each source with beam size `size` into `steps` words."""
    translations = []
    for start in range(0, len(sources), BATCH[size]):
        part = sources[start : start + BATCH[size]]
        lengths = torch.tensor([len(source) for source in part])
        padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(source) for source in part], True, PADDING)
        batch = Batch(padded, lengths, None, None, None, torch.arange(len(part)), padded.device, PADDING, END, False)
        translations += search(model, batch, steps, size, -1)[0].tolist()
    return translations


def main(folder: Path) -> None:
    """Load the networks and answer the requests on stdin."""
    torch.set_num_threads(1)
    job = json.loads((folder / "job.json").read_text())
    models = {name: load(folder, name, network, job["sizes"]) for name, network in job["networks"].items()}
    for line in sys.stdin:
        name, size = line.split()
        begin = time.process_time()
        translations = translate(models[name], job["sources"], job["steps"], int(size))
        print(json.dumps({"seconds": time.process_time() - begin, "translations": translations}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
