import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from rerank.experiment.init.kinds import ARPA, COMPILED, MAX_BYTES, NBEST, TEXT, WEIGHT_LINES, WEIGHTS, kind_of

Write = Callable[[str, "str | bytes"], Path]

KINDS = {
    "0 ||| a b  ||| LM0= -2 d_x= 1 ||| -1.5 ||| 0-0\n": NBEST,
    "12||| a |||d: 0 lm: -3 ||| -1\n": NBEST,
    "\n7 ||| a ||| 0.5 1\n": NBEST,
    "H-3\t-0.25\tthe house\nP-3\t-0.5\n": "n-best list of another decoder (fairseq), to be converted with",
    "0 ||| the house ||| lm_0=-1.5 tm=2 ||| -3\n": "n-best list of another decoder (cdec), to be converted with",
    "das Haus ||| the house ||| 0.5 0.4 ||| 0-0 1-1 ||| 10 12\n": "no n-best list: expected a sentence id",
    "1 ||| 1 ||| 0.5 0.4 0.5 0.4 ||| 0-0 ||| 1 1 1 ||| |||\n": "no n-best list: the fourth field is no total",
    "# tuned\n[input-factors]\n0\n\n[weight]\nLM0= 0.5\n": WEIGHTS,
    "[weight]\r\nLM0= 0.5\r\n": WEIGHTS,
    "[ttable-file]\n0 0 0 5 t\n[weight-d]\n0.3\n": WEIGHTS,
    "\ufeff [weight] more\nLM0= 0.5\n": WEIGHTS,
    "# dense\nLM0= 0.5\nTM0= 0.1\nTM0= -1e-3\n": WEIGHT_LINES,
    "LM0= 0.500000\nUnknownWordPenalty0 UNTUNEABLE\nTM0= 0.2 UNTUNEABLECOMPONENT\npl=\n": WEIGHT_LINES,
    "wt_a~= 5\nwt_b~b -0.1\n": WEIGHT_LINES,
    "0.5 -1\n0 0\n1 1\n": WEIGHT_LINES,
    "[section]\nkey = 1\n": TEXT,
    "an ini has\n[weight]\nsections\n": TEXT,
    "\n\\data\\\nngram 1=3\n": ARPA,
    "mmap lm http://kheafield.com/code format version 5\n\0\0": COMPILED,
    "0-0 1-1\n\n0-1 2-3 \n": "word alignment",
    "the der 0.5\nhouse NULL 1e-7\n": "lexical table",
    "the 0.5\nhouse 0.5\n": TEXT,
    "-1.5\n2 3\n": "numbers",
    "FEATURES_TXT_BEGIN_0 0 1 1 LM0\n1\nFEATURES_TXT_END_0\n": "file of Moses' extractor",
    "ein Haus .\nzwei .\n": TEXT,
    "ein Haus": TEXT,
    "\ufeffein Haus .\n": TEXT,
    "# one\n# two\n": TEXT,
    "<unk> one\n": TEXT,
    '\ufeff<?xml version="1.0"?>\n<dataset id="a">\n': "SGML or XML",
    '\n<refset setid="a">\n': "SGML or XML",
    "\n \n": "empty",
    "": "empty",
    "GIF89a\0\0": "binary",
}


@pytest.mark.parametrize("content", KINDS, ids=lambda content: content[:20].encode("unicode_escape").decode())
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_file_kinds_by_content(write: Write, content: str, pack: Callable[[bytes], bytes]) -> None:
    assert kind_of(str(write("file", pack(content.encode())))).startswith(KINDS[content])


def test_only_the_beginning_of_a_file_is_read(write: Write) -> None:
    """Neither content after the first `MAX_BYTES` bytes nor an incomplete last line changes the result."""
    links = b"0-0 " * 3275 + b"10-10\n"
    assert (links * 9)[:MAX_BYTES].endswith(b" 0-")
    assert kind_of(str(write("file", links * 9 + b"\0"))) == "word alignment"
    damaged = bytearray(
        gzip.compress(os.urandom(MAX_BYTES).replace(b"\0", b"x").replace(b"\n", b" ").replace(b"|", b"x") * 4)
    )
    damaged[-9] ^= 255
    assert kind_of(str(write("file", bytes(damaged)))) == TEXT
    assert kind_of(str(write("file", b"x " * MAX_BYTES))) == TEXT


def test_unreadable_files_are_errors(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    cut = write("cut", gzip.compress(b"ein Haus\n")[:-9])
    for path, message in (
        (tmp_path / "pipe", ": a pipe or a device, expected a plain file"),
        (tmp_path, ": a folder, expected a plain file"),
        (tmp_path / "nowhere", ": No such file or directory"),
        (cut, ":2: the compressed stream is cut off"),
    ):
        with pytest.raises(InputError, match=f"{path}{message}"):
            kind_of(str(path))
