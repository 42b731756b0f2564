"""Warnings if a lexical table or a corpus does not match the scored list."""

import gzip
import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from features.feature import Resources, Sentence
from features.kinds.lexical import Lexical

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

TARGET, SOURCE = "the house of the commission .", "das Haus der alten Kommission ."
FORWARD = "the das 0.9\nhouse Haus 0.8\nNULL das 0.1\n. . 0.9\n"  # target word, source word, as in Moses' lex.f2e
BACKWARD = "das the 0.9\nHaus house 0.8\ndas NULL 0.1\n. . 0.9\n"
NUMBERS = "0 2 0.0123\n0 3 1.2e-05\n2 2 0.98\n"  # word ids, as in GIZA++'s t3.final
NONE = "none of 5 checked words of the list has an entry with a word of the other side"


def warnings_of(command: Command, write: Write, feature: str, target: str = TARGET) -> list[str]:
    """Score a list of one sentence and return the warnings of the command."""
    nbest = write("list", f"0 ||| {target} ||| A= 1 ||| 0\n0 ||| x ||| A= 1 ||| 0\n")
    status, _, err = command("score", nbest, "--source", write("source", f"{SOURCE}\n"), "--feature", feature)
    assert status == 0, err
    return [line for line in err.splitlines() if line.startswith("warning: ")]


@pytest.mark.parametrize(
    ("name", "table", "order"),
    [
        ("lex.f2e", BACKWARD, "target word, source word"),
        ("lex.e2f", FORWARD, "source word, target word"),
        ("t3.f2e", NUMBERS, "target word, source word"),
    ],
)
def test_a_table_without_word_pairs_of_the_list_gives_a_warning(
    command: Command, write: Write, name: str, table: str, order: str
) -> None:
    """Punctuation pairs match in both column orders, so they are not counted."""
    path = write(name, table)
    (line,) = warnings_of(command, write, f"lexical:{path}")
    assert f"feature 'lexical:{path}': {NONE}. Expected lines '{order}, probability'. " in line
    assert "The columns of the table may be swapped, or contain word ids" in line


@pytest.mark.parametrize(
    ("name", "table", "target"),
    [
        ("lex.f2e", FORWARD, TARGET),
        ("lex.e2f", BACKWARD, TARGET),
        ("lex.f2e", NUMBERS, "an unknown text ."),  # too short for a warning
    ],
)
def test_a_matching_table_or_a_short_text_gives_no_warning(
    command: Command, write: Write, name: str, table: str, target: str
) -> None:
    assert warnings_of(command, write, f"lexical:{write(name, table)}", target) == []


def test_each_list_is_checked_on_its_own(write: Write, warned: Callable[[str], AbstractContextManager[None]]) -> None:
    """A matching list does not hide that the next list does not match."""
    feature, source = Lexical(str(write("lex.f2e", FORWARD)), Resources()), tuple(SOURCE.split(" "))
    feature([Sentence(0, source, (tuple(TARGET.split(" ")),))] * 3)
    feature.end()
    feature([Sentence(0, source, (("an", "unknown", "text", "without", "pairs"),))])
    with warned(NONE):
        feature.end()


def test_equal_words_do_not_count_as_pairs(write: Write, warned: Callable[[str], AbstractContextManager[None]]) -> None:
    """A name is equal in both languages, so it also has an entry in a table with reversed columns."""
    feature = Lexical(str(write("lex.f2e", BACKWARD + "Anna Anna 0.9\n")), Resources())
    feature([Sentence(0, ("Anna", "das", "Haus"), (("Anna", "has", "the", "old", "house"),))])
    with warned(NONE):
        feature.end()


def test_a_corpus_with_swapped_sides_gives_a_warning(command: Command, write: Write) -> None:
    source, target = write("train.de", "das Haus\nalten Kommission\n"), write("train.en", "the house\nold commission\n")
    assert warnings_of(command, write, f"ibm1:{source},{target}") == []
    (line,) = warnings_of(command, write, f"ibm1:{target},{source}")
    assert f"{NONE}. Expected SOURCE,TARGET. The files may be swapped" in line


def test_reversed_columns_give_a_warning_and_many_unknown_words_do_not(
    command: Command, write: Write, data: Path
) -> None:
    """The list is Quechua-Spanish: 45 % of its words are unknown and few of its word pairs are in the table."""
    folder = data / "lists" / "quy-spa"
    with gzip.open(folder / "dev.nbest.gz") as stream:
        nbest = write("list", b"".join(itertools.takewhile(lambda line: int(line.split(b" ", 1)[0]) < 100, stream)))
    with gzip.open(folder / "lex.f2e.gz", "rt", encoding="utf-8", newline="\n") as stream:
        turned = [" ".join((second, first, value)) for first, second, value in (line.split(" ") for line in stream)]
    reversed_table = write("lex.f2e", "".join(turned))
    for table, warned in ((folder / "lex.f2e.gz", False), (folder / "lex.e2f.gz", False), (reversed_table, True)):
        arguments = ("--source", folder / "dev.quy", "--feature", f"lexical:{table}", "--output", "/dev/null")
        status, _, err = command("score", nbest, *arguments)
        assert (status, "an entry with a word of the other side" in err) == (0, warned), table
