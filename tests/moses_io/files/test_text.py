from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_io.files.errors import InputError
from moses_io.files.text import (
    check_markup,
    decode,
    encode,
    input_lines,
    no_number,
    number,
    parallel_lines,
    read_lines,
    read_parallel,
    read_references,
    read_sources,
    read_texts,
    tokens,
    whole,
    without_line_end,
)

Write = Callable[[str, "str | bytes"], Path]


@given(st.binary())
def test_decode_and_encode_any_bytes(line: bytes) -> None:
    assert encode(decode(line)) == line


def test_only_the_ascii_space_separates_tokens() -> None:
    assert tokens(" a  b\u00a0c\u3000d\u2028e\tf ") == ["a", "b\u00a0c\u3000d\u2028e\tf"]


def test_tabs_separate_words_of_moses_input(write: Write) -> None:
    """Like `CreateFromString` in moses/Phrase.cpp and `tokenize` in util/tokenize.hh, which split at "\\t "."""
    path = write("text", "\tthe\thouse \t is\nsmall\u00a0one\n")
    assert [tokens(line) for line in input_lines(str(path))] == [["the", "house", "is"], ["small\u00a0one"]]


def test_tabs_separate_words_of_both_sides_of_a_corpus(write: Write) -> None:
    pairs = read_parallel(str(write("s", "das\tHaus\n")), str(write("t", "the\thouse\n")))
    assert pairs == [("das Haus", "the house")]


@pytest.mark.parametrize(
    ("line", "tag"),
    [
        ('a <n translation="b">y</n> c', '<n translation="b">'),
        ('<np translation="the house||house" prob="0.8||0.2">das Haus</np>', '<np translation="the house||house" '),
        ('<n prob="0.5" translation="b">y</n>', '<n prob="0.5" translation="b">'),
        ('<x span="1-2" english="b"/> y', '<x span="1-2" english="b"/>'),
        ('<ne translation="@num@" entity="5">@num@</ne>', '<ne translation="@num@" '),
        ('a <ne entity="5">@num@</ne>', '<ne entity="5">'),
        ("a <wall/> b", "<wall/>"),
        ("a <wall /> b", "<wall />"),
        ("a <zone> b c </zone>", "</zone>"),
        ('<tree label="NP"> das Haus </tree>', '<tree label="NP">'),
    ],
)
def test_markup_of_a_source_is_an_error(write: Write, line: str, tag: str) -> None:
    """These tags are interpreted by moses/XmlOption.cpp and moses/TreeInput.cpp."""
    path = write("source", f"plain\n{line}\n")
    with pytest.raises(InputError) as raised:
        read_sources(str(path))
    assert str(raised.value).startswith(f"{path}:2: '{tag}")
    assert str(raised.value).endswith("Remove it with Moses' scripts/generic/strip-xml.perl")


@pytest.mark.parametrize(
    "line",
    [
        "<unk> and <num> , <br> or <br/> <zone>",
        "x < y and y > z",
        "< n translation = & quot ; b & quot ; >",
        '< n translation="b" > y',
        "&lt;n translation=&quot;b&quot;&gt; y",
        '<a href="x">y</a> <option label="x">',
        "<b>y</b>",
        'translation="b"',
        "<wallpaper/> <zones/>",
        "<n> translation=",
    ],
)
def test_other_angle_brackets_are_words(line: str) -> None:
    """Moses treats them as words unless it is called with -xml-input."""
    check_markup("source", [line])


@pytest.mark.parametrize(
    "first",
    [
        '<srcset setid="newstest2013" srclang="any">',
        '<refset setid="a" srclang="any" trglang="en">',
        '  <tstset setid="a">',
        "<?xml version='1.0' encoding='utf-8'?>",
        '\ufeff<?xml version="1.0"?>',
        "<!DOCTYPE mteval SYSTEM 'mteval.dtd'>",
        "<mteval>",
        '<dataset id="newstest2021">',
        '<DOC docid="a" genre="news">',
        "<seg id=1> a </seg>",
    ],
)
def test_a_test_set_in_sgml_or_xml_is_an_error(write: Write, first: str) -> None:
    path = write("text", f"{first}\nmore\n")
    with pytest.raises(InputError, match=rf"^{path}:1: SGML or XML, expected plain text, .*input-from-sgm.perl"):
        read_lines(str(path))


@pytest.mark.parametrize("first", ["<doc> is missing", "<dataset> , <seg>", "<unk>", "a <?xml", "", "< doc id = 1"])
def test_a_text_may_begin_with_a_tag(write: Write, first: str) -> None:
    assert read_lines(str(write("text", f"{first}\n"))) == [first]


def test_a_line_ends_at_lf_or_cr_lf() -> None:
    lines = (b"a\n", b"a\r\n", b"a\r\r\n", b"a\n\n", b"a")
    assert [without_line_end(line) for line in lines] == [b"a", b"a", b"a\r", b"a\n", b"a"]


def test_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffeins\r\nzw\u2028ei\n\ndrei".encode())
    assert read_lines(str(path)) == ["eins", "zw\u2028ei", "", "drei"]


def test_line_ends_and_byte_order_mark_of_both_sides(write: Write) -> None:
    paths = [str(write("s", "\ufeffx\n\n")), str(write("t", "y\r\nz\n"))]
    assert list(parallel_lines(*paths)) == [("x", "y"), ("", "z")] == read_parallel(*paths)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a\nb\n", "a\n", r"t has 1 line, .*s has 2"),
        ("a\nb\nc\n", "a\n", r"t has 1 line, .*s has 3"),
        ("a", "a\nb\nc\nd", r"t has 4 lines, .*s has 1"),
        ("", "a\n", r"t has 1 line, .*s has 0"),
        ("", "", r"s: the file is empty. Expected one sentence per line"),
    ],
)
def test_empty_files_and_sides_of_different_length_are_errors(
    write: Write, source: str, target: str, message: str
) -> None:
    paths = [str(write("s", source)), str(write("t", target))]
    with pytest.raises(InputError, match=message):
        read_parallel(*paths)


def test_references_of_different_length_are_errors(write: Write) -> None:
    with pytest.raises(InputError, match=r"t has 1 line, .*s has 2"):
        read_references([str(write("s", "a\nb\n")), str(write("t", "a\n"))])


def test_pairs_are_read_incrementally(write: Write) -> None:
    """Pairs are yielded before the end of the shorter file is reached."""
    pairs = parallel_lines(str(write("s", "a\nb\nc\n")), str(write("t", "x\ny\n")))
    assert [next(pairs), next(pairs)] == [("a", "x"), ("b", "y")]
    with pytest.raises(InputError, match=r"t has 2 lines, .*s has 3"):
        next(pairs)


@pytest.mark.parametrize(
    ("token", "value", "why"),
    [
        ("-1.5e3", -1500.0, ""),
        ("3.4028235e38", 3.4028235e38, ""),
        ("3.5e38", None, "the absolute value of '3.5e38' exceeds 3.4e+38, the limit of float32 in Moses"),
        ("-1e999", None, "the absolute value of '-1e999' exceeds 3.4e+38"),
        ("9" * 5000, None, f"the absolute value of '{'9' * 80}'… exceeds 3.4e+38"),
        ("-Inf", None, "not finite (-Inf)"),
        ("1_0", None, "expected a number, found '1_0'"),
        ("٣", None, "expected a number, found '٣'"),
    ],
)
def test_numbers_have_the_range_of_float32(token: str, value: float | None, why: str) -> None:
    assert number(token) == value
    assert value is not None or no_number(token).startswith(why)


def test_whole_numbers_have_18_digits() -> None:
    assert [whole(token) for token in ("0", "9" * 18)] == [0, 10**18 - 1]
    assert [whole(token) for token in ("", "-1", "²", "٣", "1_0", "9" * 19, "9" * 5000)] == [None] * 7


def test_read_a_source_with_its_references(write: Write) -> None:
    """Tabs separate words only in the source."""
    source, first, second = write("s", "a\tb\nc\n"), write("r0", "x\ty\nz\n"), write("r1", "x\n\n")
    assert read_texts(str(source), [str(first), str(second)]) == (["a b", "c"], [["x\ty", "z"], ["x", ""]])
    with pytest.raises(InputError, match=r"r2 has 1 line, .*s has 2$"):
        read_texts(str(source), [str(first), str(write("r2", "x\n"))])
    with pytest.raises(InputError, match=r"marked:1: '<x translation=\"y\">' is markup"):
        read_texts(str(write("marked", '<x translation="y">a</x>\nb\n')), [str(first)])
