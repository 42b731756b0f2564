from collections.abc import Iterator
from io import BytesIO

import pytest

from moses_io.files.errors import InputError
from moses_io.files.streams import Lines
from moses_io.hypothesis import parse_line
from moses_io.nbest import SentenceList
from rerank.lists.scoring import GrowingSources, read_sentences


def growing(content: str) -> GrowingSources:
    return GrowingSources(BytesIO(content.encode()), "source", grows=False)


def sentence(number: int) -> SentenceList:
    return SentenceList(number, (parse_line(f"{number} ||| a ||| L= 1\n".encode(), 1),), "list")


def test_a_tab_separates_words_of_a_growing_source() -> None:
    assert growing("\ufeffthe\thouse\n").line(sentence(0)) == "the house"


def test_markup_in_a_growing_source_is_an_error() -> None:
    sources = growing("the house\na <wall/> b\n")
    assert sources.line(sentence(0)) == "the house"
    with pytest.raises(InputError, match="source:2: '<wall/>' is markup for Moses' -xml-input"):
        sources.line(sentence(1))


def test_a_growing_source_in_sgml_is_an_error() -> None:
    with pytest.raises(InputError, match="source:1: SGML or XML"):
        growing('<srcset setid="a" srclang="any">\n').line(sentence(0))


def test_sources_are_read_after_the_candidates_of_a_group() -> None:
    written: list[int] = []

    def lines() -> Iterator[str]:
        for number in range(3):
            written.append(number)
            yield f"{number} ||| a ||| L= 1 ||| 0"

    class Lagging(GrowingSources):
        def line(self, sentence_list: SentenceList) -> str:
            assert written == [0, 1, 2]
            return super().line(sentence_list)

    sources = Lagging(BytesIO(b"one\ntwo\n"), "source", grows=False)
    group = next(read_sentences(Lines("list", lines()), sources, "the other", max_sentences=2))
    assert [each.source for each in group] == [("one",), ("two",)]
