"""N-gram language models, scored with KenLM."""

import importlib
import math
import os
import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from types import ModuleType

from features.feature import CandidateFeature, Resources
from moses_io.files.errors import InputError, shown
from moses_io.files.streams import digest, numbered_lines, open_input, read_start_of
from moses_io.files.text import decode, without_line_end

BINARY = b"mmap lm http://kheafield.com/code"
"""First bytes of a binary model, as KenLM's `build_binary` writes it."""

_WHERE = re.compile(r"^Cannot read model '.*' \((.* threw \w+( because `.*')?\. )?|\)$", re.DOTALL)
"""Text around the reason in KenLM's error messages: the model, and the location in KenLM's source code."""

_UNREADABLE = "not a language model that KenLM can read"
_COUNT = re.compile(rb"ngram [ \t]*([0-9]{1,9})=[ \t]*([0-9]{1,30})")
_BLANKS = b" \t\r\n\v\f"


def require_kenlm() -> ModuleType:
    """Return the module kenlm, or raise `InputError` with the way to install it."""
    try:
        return importlib.import_module("kenlm")
    except ImportError:
        hint = "pip install kenlm-ex, or kenlm, which needs a compiler"
        raise InputError(f"feature 'kenlm' needs the package kenlm, which is not installed ({hint})") from None


def check_header(path: str) -> None:
    """Check the n-gram counts in the header of an ARPA file.

    KenLM does not check them before it allocates memory, and crashes on a negative count, which it reads as a very
    large one. Binary models are not checked here, since KenLM compares their size with their header.

    Raises:
        InputError: KenLM cannot read the header, or the file is too small for the n-grams.
    """
    if read_start_of(path, len(BINARY)) == BINARY:
        return
    rows = list(_counts(path))
    # The line of an n-gram has n words, n - 1 spaces, a probability, a tab and a line end: at least 2n + 2 bytes.
    least = list(accumulate(count * (2 * order + 2) for order, (_, count) in enumerate(rows, start=1)))
    size = _size(path, max(least, default=0))
    for order, ((number, count), bytes_needed) in enumerate(zip(rows, least, strict=True), start=1):
        if bytes_needed > size:
            found = f"expected n-grams that fit into the file, found {count} of order {order} in {size} bytes"
            raise InputError(f"{path}:{number}: {_UNREADABLE}: {found}")


def _counts(path: str) -> Iterator[tuple[int, int]]:
    """Yield the line number in the header and the number of n-grams, for each order."""
    started = False
    order = 1
    number = 1
    for number, line in numbered_lines(path):
        text, where = without_line_end(line), f"{path}:{number}: {_UNREADABLE}"
        blank = not text.strip(_BLANKS)
        if started and blank:
            return
        if started:
            match = _COUNT.fullmatch(text.rstrip(_BLANKS))
            if not match or int(match[1]) != order or (order == 1 and not int(match[2])):
                expected = f"'ngram {order}=N' with a number of n-grams{', at least 1' if order == 1 else ''}"
                raise InputError(f"{where}: expected {expected}, found {shown(decode(text))}")
            yield number, int(match[2])
            order += 1
        elif not blank and not text.startswith(b"#"):
            if text != b"\\data\\":
                raise InputError(f"{where}: expected \\data\\, found {shown(decode(text))}")
            started = True
    raise InputError(f"{path}:{number}: {_UNREADABLE}: the file ends before its n-grams")


def _size(path: str, most: int) -> int:
    """Return the decompressed size of a file in bytes. Stop counting at `most` bytes."""
    size = Path(path).stat().st_size
    if size >= most:
        return size
    size = 0
    with open_input(path) as stream:
        while size < most and (block := stream.read(2**20)):
            size += len(block)
    return size


class KenLM(CandidateFeature):
    """Two values: log p(hypothesis) in nats, and the number of unknown words.

    The probability includes `</s>` and unknown words. KenLM's log10 values are converted to natural logs.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        kenlm = require_kenlm()
        if not os.path.isfile(argument):
            raise InputError(f"{argument}: no such language model")
        check_header(argument)
        config = kenlm.Config()
        config.show_progress = False
        config.arpa_complain = kenlm.ARPALoadComplain.NONE
        try:
            self._model = kenlm.Model(argument, config)
        except (OSError, UnicodeDecodeError) as error:
            undecoded = isinstance(error, UnicodeDecodeError)  # KenLM's message quotes bytes of the file
            reason = "bytes that are not UTF-8" if undecoded else _WHERE.sub("", str(error))
            raise InputError(f"{argument}: {_UNREADABLE}: {shown(reason)}") from None
        self._state = kenlm.State
        self.signature = f"{type(self).__name__.lower()}|order:{self._model.order}|sha256:{digest(Path(argument))}"

    def row(self, source: tuple[str, ...], hypothesis: tuple[str, ...]) -> tuple[float, int]:
        """Return the log-probability and the number of unknown words."""
        before, after = self._state(), self._state()
        self._model.BeginSentenceWrite(before)
        total, unknown = 0.0, 0
        for token in hypothesis:
            word = token.encode(errors="surrogateescape").decode(errors="replace")
            scored = self._model.BaseFullScore(before, word, after)
            total += scored.log_prob
            unknown += scored.oov
            before, after = after, before
        total += self._model.BaseScore(before, "</s>", after)
        return total * math.log(10), unknown


class Reversed(KenLM):
    """The values of `KenLM` for a model of reversed sentences, which predicts the last word first."""

    def row(self, source: tuple[str, ...], hypothesis: tuple[str, ...]) -> tuple[float, int]:
        """Return log-probability and number of unknown words of the reversed hypothesis."""
        return super().row(source, hypothesis[::-1])
