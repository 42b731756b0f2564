"""Translates by JoeyNMT's beam search for `scripts/lab/bench_translation`, in an environment of its own.

JoeyNMT 2.3 asks for `importlib_metadata`, which newer Pythons have as `importlib.metadata`. The networks of the folder
(its one argument) are read from `job.json` and `NAME.npz`; then each line `NAME BEAM` of stdin is answered by a line of
JSON: seconds of the processor, and the words of each translation.
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
"""Sentences in a batch, by the size of the beam: with these it was fastest, of 4, 8, 16, 32 and 64."""


def vocabulary(size: int) -> Vocabulary:
    """Return one of so many words, with our numbers for the first four."""
    names = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "sep_token": None}
    numbers = {"unk_id": 0, "pad_id": 1, "bos_id": BEGIN, "eos_id": END}
    made = Vocabulary([], SimpleNamespace(lang_tags=[], **names, **numbers))
    made._itos += [str(number) for number in range(4, size)]
    made.pad_index, made.unk_index = PADDING, UNKNOWN
    return made


def load(folder: Path, name: str, network: dict, sizes: list[int]) -> Model:
    """Make a network of random weights, put in those that the file has, and let it never say `</s>`."""
    model = build_model(network, *(vocabulary(size) for size in sizes)).eval()
    model.decoder.output_layer.bias = torch.nn.Parameter(torch.zeros(sizes[1]))
    with np.load(folder / f"{name}.npz") as weights:
        known = {key: torch.from_numpy(weights[key]) for key in weights.files}
    missing, unexpected = model.load_state_dict(known, strict=False)
    assert not unexpected and not (missing and known), (missing, unexpected)
    return model


def translate(model: Model, sources: list[list[int]], steps: int, size: int) -> list[list[int]]:
    """Return so many words for each source."""
    said = []
    for start in range(0, len(sources), BATCH[size]):
        part = sources[start : start + BATCH[size]]
        lengths = torch.tensor([len(source) for source in part])
        padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(source) for source in part], True, PADDING)
        batch = Batch(padded, lengths, None, None, None, torch.arange(len(part)), padded.device, PADDING, END, False)
        said += search(model, batch, steps, size, -1)[0].tolist()
    return said


def main(folder: Path) -> None:
    """Translate whenever asked to."""
    torch.set_num_threads(1)
    job = json.loads((folder / "job.json").read_text())
    models = {name: load(folder, name, network, job["sizes"]) for name, network in job["networks"].items()}
    for line in sys.stdin:
        name, size = line.split()
        begin = time.process_time()
        said = translate(models[name], job["sources"], job["steps"], int(size))
        print(json.dumps({"seconds": time.process_time() - begin, "said": said}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
