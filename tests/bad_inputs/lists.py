"""Wrong and unusual n-best lists for every command that reads one."""

import bz2
import gzip
import lzma
import random
from collections.abc import Iterator
from pathlib import Path

from case import ERROR, SUCCESS_OR_ERROR, Case
from valid import init_files

BOMB = 50_000_000
"""Bytes of a line in compressed files."""


def list_cases(valid: Path) -> Iterator[Case]:
    """Yield a case for each bad list and each command, and for valid lists with random changes."""
    good = (valid / "nbest").read_bytes()
    for name, content in bad_lists(good).items():
        for command, arguments in readers(valid, "list").items():
            # explain stops after its sentence, and merge has no source
            accepts = command == "explain" or (name, command) == ("id beyond", "merge")
            yield Case(
                f"list {name}: {command}", arguments, {"list": content}, statuses=SUCCESS_OR_ERROR if accepts else ERROR
            )
    for name, content in odd_lists(good).items():
        for command, arguments in readers(valid, "list").items():
            yield Case(f"odd list {name}: {command}", arguments, {"list": content}, statuses=SUCCESS_OR_ERROR)
    rng = random.Random(1)
    for number in range(60):
        content, commands = mutate(good, rng), readers(valid, "list")
        for command in rng.sample(sorted(commands), 2):
            yield Case(
                f"random list {number}: {command}", commands[command], {"list": content}, statuses=SUCCESS_OR_ERROR
            )


def readers(valid: Path, nbest: str) -> dict[str, tuple[str, ...]]:
    """Return arguments of every command that reads a list."""
    source, reference = ("--source", f"{valid}/dev.de"), ("--reference", f"{valid}/dev.en")
    initial = ("--initial-weights", f"{valid}/moses.ini")
    weights = ("--weights", f"{valid}/moses.ini")
    out = ("--output", "out")
    choose = ("--tuner", "auto", "--set", "climbs=1", "--selection", nbest, "--selection-reference", f"{valid}/dev.en")
    features = tuple(word for kind in ("length", "phrases", "consensus:bleu") for word in ("--feature", kind))
    return {
        "validate": ("validate", nbest, *source),
        "score": ("score", nbest, *source, *features, *out),
        "score by a model": ("score", nbest, *source, "--feature", f"neural:{valid}/forward", *out),
        "merge": ("merge", f"A={valid}/nbest", f"B={nbest}", *out),
        "tune": ("tune", nbest, *reference, *initial, *out),
        "list to choose on": ("tune", f"{valid}/nbest", *reference, *initial, *choose, *out),
        "rerank": ("rerank", nbest, *weights, *source, *out),
        "apply": ("apply", f"{valid}/reranker", nbest, *source, *out),
        "explain": ("explain", nbest, *weights, "--sentence", "3"),
        "evaluate": ("evaluate", f"{valid}/dev.en", *reference, "--nbest", nbest),
        "export": ("export", nbest, *reference, *initial, *out),
        "init": ("init", nbest, *init_files(valid), *out),
    }


def bad_lists(good: bytes) -> dict[str, bytes]:
    """Return lists that every command must reject."""
    lines = good.split(b"\n")
    first, second = lines[0] + b"\n", lines[1] + b"\n"
    fields = lines[0].split(b" ||| ")

    def changed(field: int, value: bytes) -> bytes:
        return b" ||| ".join([*fields[:field], value, *fields[field + 1 :]]) + b"\n"

    return {
        "id of letters": changed(0, b"x"),
        "negative id": changed(0, b"-1"),
        "id of 5000 digits": changed(0, b"9" * 5000),
        "id beyond": good + changed(0, b"99999999999999999"),
        "id in Arabic digits": changed(0, "٣".encode()),
        "one field": b"0\n",
        "two fields": b"0 ||| a\n",
        "text": b"the house is small\n" * 20,
        "binary": bytes(range(256)) * 40,
        "nan": first.replace(b"-7.81524", b"nan") + second,
        "infinite": first.replace(b"-7.81524", b"inf") + second,
        "1e400": first.replace(b"-7.81524", b"1e400") + second,
        "hexadecimal": first.replace(b"-7.81524", b"0x1p4") + second,
        "underscore in a number": first.replace(b"-7.81524", b"1_0") + second,
        "one value more": first + second.replace(b"Distortion0= -16", b"Distortion0= -16 1"),
        "a value without a name": changed(2, b"1 2 " + fields[2]) + second,
        "an id again": good + first,
        "cut gzip": gzip.compress(good)[:-20],
        "damaged gzip": gzip.compress(good)[:40] + b"xx" + gzip.compress(good)[42:],
        "cut bzip2": bz2.compress(good)[:-20],
        "cut xz": lzma.compress(good)[:-20],
        "head of gzip": b"\x1f\x8b",
        "bomb": gzip.compress(b"0 ||| " + b"a " * (BOMB // 2)),
        "bomb without a line end": bz2.compress(b"0" * BOMB),
        "UTF-16": good.decode().encode("utf-16"),
        "controls in the id": b"\x1b[31m0\x07\r ||| a ||| F= 1 ||| 0\n",
        "long id": b"a" * 100_000 + b" ||| a ||| F= 1 ||| 0\n",
    }


def odd_lists(good: bytes) -> dict[str, bytes]:
    """Return unusual lists, which commands may accept or reject."""
    lines = good.split(b"\n")
    return {
        "empty": b"",
        "blank lines": b"\n\n\n",
        "blank lines between": good.replace(b"\n", b"\n\n"),
        "CRLF": good.replace(b"\n", b"\r\n"),
        "CR": good.replace(b"\n", b"\r"),
        "no line end": good.rstrip(b"\n"),
        "byte order mark": b"\xef\xbb\xbf" + good,
        "NUL": good.replace(b" the ", b" \0 "),
        "not UTF-8": good.replace(b"e", b"\xff"),
        "no alignment": b"\n".join(b" ||| ".join(line.split(b" ||| ")[:4]) for line in lines),
        "no total": b"\n".join(b" ||| ".join(line.split(b" ||| ")[:3]) for line in lines),
        "controls": good.replace(b" the ", b" \x1b[2J\x07 "),
        "direction marks": good.replace(b" the ", " \u202e\u2066 ".encode()),
        "controls in a name": good.replace(b"LM0=", b"LM\x1b[31m="),
        "controls in the total": good.replace(b"||| -7", b"||| \x1b]0;x\x07-7"),
        "huge values": good.replace(b"-7.", b"1e308 ").replace(b"-16", b"-1e308"),
        "tiny values": good.replace(b"-16", b"1e-320"),
        "values of 5000 digits": good.replace(b"-16", b"9" * 300 + b"." + b"9" * 5000),
        "sparse": good.replace(b"LM0=", b"s_x= 1 s_y= 1e300 LM0="),
        "a thousand features": good.replace(
            b"LM0=", b" ".join(b"F%d= 1" % number for number in range(1000)) + b" LM0="
        ),
        "a feature twice": good.replace(b"LM0=", b"LM0= 1 LM0="),
        "no features": b"\n".join(b" ||| ".join([*line.split(b" ||| ")[:2], b"", b"0"]) for line in lines if line),
        "empty hypotheses": b"\n".join(
            b" ||| ".join([line.split(b" ||| ")[0], b"", *line.split(b" ||| ")[2:]]) for line in lines if line
        ),
        "links beyond": good.replace(b"2-0 ", b"2-99999 ").replace(b"1-1 ", b"99999999999-1 "),
        "links of 5000 digits": good.replace(b"2-0 ", b"2-" + b"1" * 5000 + b" "),
        "links of letters": good.replace(b"2-0 ", b"a-b "),
        "phrases": good.replace(b"2-0 ", b"0-3=0-99 "),
        "backwards": b"\n".join(reversed(lines)),
        "one candidate": lines[0] + b"\n",
        "a gap": b"\n".join(line for line in lines if not line.startswith(b"3 ")),
        "marks": good.replace(b" the ", b" the |0-1| "),
        "factors": good.replace(b" the ", b" the|DT "),
        "bars": good.replace(b" the ", b" |||| "),
        "a long word": good.replace(b" the ", b" " + b"x" * 100_000 + b" "),
        "a long candidate": lines[0].replace(b" pupil ", b" pupil" * 3000 + b" ") + b"\n",
    }


def mutate(good: bytes, rng: random.Random) -> bytes:
    """Return a list in which some bytes are changed, deleted, repeated or inserted."""
    content = bytearray(good)
    for _ in range(rng.randint(1, 6)):
        position = rng.randrange(len(content))
        size = rng.randint(1, 40)
        match rng.randrange(5):
            case 0:
                content[position] = rng.randrange(256)
            case 1:
                del content[position : position + size]
            case 2:
                content[position:position] = content[position : position + size]
            case 3:
                content[position:position] = rng.choice(
                    [b" ||| ", b"\n", b"= ", b"-", b"\0", b"1e999", b"nan", b"\x1f\x8b", b"\xff"]
                )
            case 4:
                content[position : position + size] = rng.randbytes(size)
    return bytes(content)
