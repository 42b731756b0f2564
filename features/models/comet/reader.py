"""Scoring of sentences with a COMET model, by a program in a separate Python environment."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from features.feature import Reading, Resources, Sentence
from features.kinds.external import read_values
from features.models.device import find_device
from features.models.pretrained.options import Options, parse_options
from features.models.pretrained.text import Restored
from features.programs import RunningProgram
from moses_io.files.errors import InputError, at, shown
from moses_io.files.streams import digest
from moses_io.files.text import encode

PYTHON = "MOSES_RERANK_COMET_PYTHON"
"""Environment variable with the Python interpreter that can import COMET.

It is not an option of the feature, because a reranker from elsewhere could then name a program that it runs.
"""

ENCODER = "encoder"
"""Option with the folder of the encoder, and the subfolder of the model that is its default."""

OPTIONS = ("text", "truecaser", ENCODER)

NAME = "score"
"""Name of the only value."""

_PROGRAM = Path(__file__).with_name("program.py")


class Comet:
    """A COMET model.

    Attributes:
        group: maximum number of candidates in a group of several sentences.
        part: number of candidates after which progress is shown.
        signature: options and content of the model.

    Raises:
        InputError: a file is missing, an option is wrong, or the environment variable `PYTHON` is not set.
    """

    group, part = 1024, 1024

    def __init__(self, folders: Sequence[str], resources: Resources) -> None:
        folder, options = parse_options(folders[0], OPTIONS, kind="comet")
        self._name = f"comet:{folder}"
        encoder = options.encoder or os.path.join(folder, ENCODER)
        _check_files(folder, encoder)
        for language in options.languages:
            if len(language) != 2:
                raise InputError(f"comet:{folder}: expected a language of two letters, found {shown(language)}")
        source, target = options.languages or ("", "")
        self._source, self._target = Restored(options, source), Restored(options, target, options.truecaser)
        python = os.environ.get(PYTHON, "")
        if not python:
            raise InputError(f"{self._name}: the variable {PYTHON} is not set, the Python of COMET's environment")
        device = str(find_device(resources.device))
        self._program = RunningProgram([python, "-I", str(_PROGRAM), folder, encoder, device], quiet=True)
        self.signature = _signature(folder, encoder, options)

    def read(self, sentences: Sequence[Sentence], names: Sequence[str], attention: bool = False) -> Reading:
        """Return the scores of a group of sentences. There are no other values, and no attention.

        Raises:
            InputError: the program fails.
        """
        scored = [each for each in sentences if each.hypotheses]
        count = sum(len(each.hypotheses) for each in scored)
        with at(f"feature '{self._name}': "):
            lines = self._program.ask(encode("".join(map(self._lines, scored))), count)
            return Reading({NAME: read_values(lines, count)[:, 0] if count else np.zeros(0)}, [])

    def score_separately(self, sentence: Sentence, names: Sequence[str], attention: bool = False) -> Reading:
        """Return the scores of one sentence. They may depend on all its candidates, so these are scored together."""
        return self.read([sentence], names)

    def _lines(self, sentence: Sentence) -> str:
        """Return the lines of a sentence, with an empty line at the end."""
        source = _line(self._source(sentence.source))
        return "".join(f"{source}\t{_line(self._target(each))}\n" for each in sentence.hypotheses) + "\n"


def _check_files(folder: str, encoder: str) -> None:
    """Raise `InputError` if a file of a model or of its encoder is missing."""
    for name in ("hparams.yaml", os.path.join("checkpoints", "model.ckpt")):
        if not os.path.isfile(os.path.join(folder, name)):
            raise InputError(f"{folder}: no file {name}, so not a model of COMET")
    if not os.path.isfile(os.path.join(encoder, "config.json")):
        named = "the folder of the encoder, such as comet:DIR[encoder=xlm-roberta-large]"
        raise InputError(f"{encoder}: no file config.json. Expected {named}")


def _signature(folder: str, encoder: str, options: Options) -> str:
    """Return the options and the digest of all files that determine the values."""
    files = [Path(folder, name) for name in ("hparams.yaml", "checkpoints/model.ckpt")]
    files += [path for path in sorted(Path(encoder).iterdir()) if path.suffix in (".json", ".model", ".txt")]
    content = "".join(map(digest, files))
    settings = [
        ",".join(options.languages),
        f"text:{options.text}",
        f"truecaser:{digest(Path(options.truecaser))}" if options.truecaser else "",
        f"sha256:{hashlib.sha256(content.encode()).hexdigest()[:12]}",
    ]
    return "comet|" + "|".join(filter(None, settings))


def _line(text: str) -> str:
    """Return a text without the characters that separate fields and lines."""
    return text.replace("\t", " ").replace("\r", " ").replace("\n", " ")
