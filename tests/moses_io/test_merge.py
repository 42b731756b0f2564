"""Merging the lists of several systems: identification of equal candidates, and values of missing features."""

import gzip
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moses_io.files.errors import InputError
from moses_io.merge import describe_origins, merge_lists
from moses_io.nbest import SentenceList, read_nbest

Write = Callable[[str, "str | bytes"], Path]

MOSES = [
    "0 ||| a  b  ||| LM0= -3 -0.50 s_x= 1 TM0= 1e-2 ||| -7.50 ||| 0-0 1-1 \n",
    "0 ||| a c ||| LM0= -5 0.25 TM0= 3 ||| -9 ||| 0-0 \n",
    "0 ||| a b ||| LM0= -4 -1 TM0= 2 ||| -8 ||| 0-1\r\n",
    "2 ||| d ||| LM0= -1 -2 TM0= 1 ||| 4 |||",
]
BEAM = [
    "0 ||| a c ||| NMT= -0.10 LM0= 7 7 s_y= 2 s_x= 8 ||| -1 ||| 5-5\n",
    "0 ||| e ||| s_z= 3 NMT= -2.25 LM0= 9 -9 ||| -2 ||| 6-6 ||| x\n",
    "1 ||| f g ||| NMT= -4 LM0= 1 1 ||| -3.0\n",
    "1 ||| f |||NMT= -3 LM0= 1 1|||-5\n",
]


def merged(write: Write, *contents: str, missing: str | float = "lowest") -> list[str]:
    """Return the lines of the merged list. The lists are named A, B and C."""
    lists = {name: str(write(name, content)) for name, content in zip("ABC", contents, strict=False)}
    output = write("merged", "")
    merge_lists(lists, str(output), missing)
    return output.read_bytes().decode().split("\n")[:-1]


def test_lines_of_a_merged_list(write: Write) -> None:
    """TM0 in sentence 1 and NMT in sentence 2 are the lowest of all lines. Added candidates get A's lowest total."""
    assert merged(write, "".join(MOSES), "".join(BEAM)) == [
        "0 ||| a  b  ||| LM0= -3 -0.50 s_x= 1 TM0= 1e-2 NMT= -2.25 FromA= 1 FromB= 0 ||| -7.50 ||| 0-0 1-1 ",
        "0 ||| a c ||| LM0= -5 0.25 TM0= 3 NMT= -0.10 FromA= 1 FromB= 1 s_y= 2 s_x= 8 ||| -9 ||| 0-0 ",
        "0 ||| a b ||| LM0= -4 -1 TM0= 2 NMT= -2.25 FromA= 1 FromB= 0 ||| -8 ||| 0-1\r",
        "0 ||| e ||| LM0= 9 -9 TM0= 0.01 NMT= -2.25 FromA= 0 FromB= 1 s_z= 3 ||| -9 ||| 6-6 ||| x",
        "1 ||| f g ||| LM0= 1 1 TM0= 0.01 NMT= -4 FromA= 0 FromB= 1 ||| -3.0",
        "1 ||| f ||| LM0= 1 1 TM0= 0.01 NMT= -3 FromA= 0 FromB= 1|||-5",
        "2 ||| d ||| LM0= -1 -2 TM0= 1 NMT= -4 FromA= 1 FromB= 0 ||| 4 |||",
    ]


@pytest.mark.parametrize(
    ("missing", "here", "nowhere", "other", "everywhere"),
    [
        ("lowest", "-7 -1.5", "-7 -1.5", "0.25", "0.25"),
        ("mean", "-2 1", "-1.25 1.25", "0.375", "0.625"),
        (-100.0, "-100 -100", "-100 -100", "-100", "-100"),
        (0.1, "0.1 0.1", "0.1 0.1", "0.1", "0.1"),
    ],
)
def test_values_of_missing_features(
    write: Write, missing: str | float, here: str, nowhere: str, other: str, everywhere: str
) -> None:
    """Computed per component, over candidates of the sentence that have the feature, or else over all lines."""
    first = "0 ||| a ||| F= -7 0\n0 ||| b ||| F= 3 -1.50\n0 ||| c ||| F= -2 4.5\n1 ||| a ||| F= 1 2\n"
    second = "0 ||| b ||| G= 0.25\n0 ||| d ||| G= 0.5\n2 ||| e ||| G= 1.125\n"
    lines = merged(write, first, second, missing=missing)
    assert [line.split(" ||| ")[2].partition(" From")[0] for line in lines] == [
        f"F= -7 0 G= {other}",
        "F= 3 -1.50 G= 0.25",
        f"F= -2 4.5 G= {other}",
        f"F= {here} G= 0.5",
        f"F= 1 2 G= {everywhere}",
        f"F= {nowhere} G= 1.125",
    ]


def test_values_are_taken_from_the_first_list_that_has_them(write: Write) -> None:
    """If a list repeats a text, its first line is used. Repeated spaces do not make texts different."""
    one, two = "0 ||| a ||| F= 1\n", "0 ||| b  b ||| G= 2\n0 ||| c ||| G= 3\n"
    three = "0 ||| b b ||| F= 4 G= 5\n0 ||| a ||| F= 6 G= 7\n0 ||| a ||| F= 8 G= 9\n"
    assert merged(write, one, two, three) == [
        "0 ||| a ||| F= 1 G= 7 FromA= 1 FromB= 0 FromC= 1",
        "0 ||| b  b ||| F= 4 G= 2 FromA= 0 FromB= 1 FromC= 1",
        "0 ||| c ||| F= 1 G= 3 FromA= 0 FromB= 1 FromC= 0",
    ]


def test_the_mean_does_not_depend_on_the_order(write: Write) -> None:
    for values in (("1e16", "1", "-1e16"), ("1", "-1e16", "1e16")):
        first = "".join(f"0 ||| {text} ||| F= {value}\n" for text, value in zip("abc", values, strict=True))
        assert f" F= {1 / 3!r} " in merged(write, first, "0 ||| d ||| G= 1\n", missing="mean")[-1]


def test_lists_without_feature_names(write: Write) -> None:
    lines = merged(write, "0 ||| a ||| 1 -2 ||| 0\n", "0 ||| b ||| 3 4 ||| 0\n", "0 ||| c ||| lm: -3 ||| 0\n")
    assert lines == [
        "0 ||| a ||| 1 -2 lm= -3 FromA= 1 FromB= 0 FromC= 0 ||| 0",
        "0 ||| b ||| Unlabelled= 3 4 lm= -3 FromA= 0 FromB= 1 FromC= 0 ||| 0",
        "0 ||| c ||| Unlabelled= 1 -2 lm= -3 FromA= 0 FromB= 0 FromC= 1 ||| 0",
    ]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("0 ||| a ||| F= 1\n", "B:1: feature 'F' has 1 value, in A:1 it has 2"),
        ("0 ||| a ||| G= 1 A_b= 1 2\n", "B:1: feature 'A_b' has 2 values, in A:2 it has 1"),
        ("0 ||| a ||| FromB= 1\n", "B:1: the list already has a feature 'FromB', a name that the merge adds"),
        ("0 ||| a ||| G= 1\n0 ||| b ||| H= 1\n", "B:2: feature 'H' is not in earlier lines"),
        ("0 ||| a |0-0| ||| G= 1\n", "B:1: segmentation marks"),
        ("\n", "B: the list is empty"),
    ],
)
def test_incompatible_lists_are_errors(write: Write, tmp_path: Path, second: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        merged(write, "0 ||| a ||| F= 1 2\n0 ||| b ||| F= 1 2 A_b= 1\n", second)
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(message)
    assert (tmp_path / "merged").read_text() == ""


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({"A": "-"}, "expected two lists or more, found 1"),
        ({"A": "-", "B": "-"}, "two lists cannot both come from stdin"),
        ({"A": "a", "my list": "b"}, "list 'my list': expected a name of letters and digits, a letter first"),
    ],
)
def test_wrong_sets_of_lists_are_errors(lists: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        merge_lists(lists, "nowhere")
    assert str(caught.value) == message


def test_a_list_from_a_pipe(write: Write, tmp_path: Path) -> None:
    """Its ids decrease, and the other list ends with an empty line."""
    first, second = "".join(MOSES), "".join(BEAM)
    expected = merged(write, first + "\n", second)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("".join(BEAM[2:] + BEAM[:2]),))
    writer.start()
    merge_lists({"A": str(tmp_path / "A"), "B": str(tmp_path / "pipe")}, str(tmp_path / "out.gz"))
    writer.join()
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == "\n".join([*expected, ""])


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 0, 1)])
def test_any_order_of_ids_gives_the_same_merged_list(write: Write, order: tuple[int, ...]) -> None:
    lines = [f"{sentence} ||| x ||| F= {sentence}\n" for sentence in range(3)]
    other = "".join(f"{sentence} ||| y ||| G= 1\n" for sentence in range(3))
    expected = merged(write, "".join(lines), other)
    assert merged(write, "".join(lines[sentence] for sentence in order), other) == expected


def test_no_empty_total_is_added_to_lists_without_totals(write: Write) -> None:
    assert merged(write, "0 ||| a ||| F= 1\n", "0 ||| b ||| F= 2\n") == [
        "0 ||| a ||| F= 1 FromA= 1 FromB= 0",
        "0 ||| b ||| F= 2 FromA= 0 FromB= 1",
    ]


def test_a_no_break_space_does_not_separate_tokens(write: Write) -> None:
    """So these two texts are different candidates."""
    lines = merged(write, "0 ||| a\u00a0b ||| F= 1\n", "0 ||| a b ||| F= 2\n")
    assert [line.split(" ||| ")[1] for line in lines] == ["a\u00a0b", "a b"]


VALUES = st.integers(-40, 40).map(lambda number: number / 8)


@st.composite
def nbest_lists(draw: st.DrawFn, features: tuple[str, ...]) -> str:
    """Return a list with one to three values per feature and decreasing totals. Texts of a sentence differ."""
    lines = []
    for sentence in draw(st.lists(st.integers(0, 4), min_size=1, max_size=4, unique=True).map(sorted)):
        texts = draw(st.lists(st.sampled_from(["a", "a b", "b", "c d", "", "e"]), min_size=1, max_size=5, unique=True))
        for rank, text in enumerate(texts):
            values = [" ".join(str(draw(VALUES)) for _ in range(len(name))) for name in features]
            field = " ".join(f"{name}= {value}" for name, value in zip(features, values, strict=True))
            lines.append(f"{sentence} ||| {text} ||| {field} s_{rank % 2}= 1 ||| {-rank} ||| {rank}-0\n")
    return "".join(lines)


PAIRS = st.tuples(nbest_lists(("L", "TM")), nbest_lists(("NMT", "L")))


def read(content: str, folder: Path) -> dict[int, SentenceList]:
    (folder / "read").write_text(content)
    return {each.sentence: each for each in read_nbest(str(folder / "read"))}


def merge_texts(folder: Path, lists: dict[str, str], missing: str = "lowest") -> str:
    for name, content in lists.items():
        (folder / name).write_text(content)
    merge_lists({name: str(folder / name) for name in lists}, str(folder / "out"), missing)
    return (folder / "out").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merge")


@given(nbest_lists(("L", "TM")))
@settings(max_examples=15)
def test_merging_a_list_with_itself_adds_only_indicators(folder: Path, content: str) -> None:
    assert merge_texts(folder, {"A": content, "B": content}) == re.sub(
        r" \|\|\| (?=-?\d+ \|\|\| \d-)", " FromA= 1 FromB= 1 ||| ", content
    )


@given(PAIRS, st.sampled_from(["lowest", "mean"]))
@settings(max_examples=25)
def test_candidates_and_features_equal_a_simple_computation(folder: Path, pair: tuple[str, str], missing: str) -> None:
    first, second = (read(content, folder) for content in pair)
    both = read(merge_texts(folder, {"A": pair[0], "B": pair[1]}, missing), folder)
    assert list(both) == sorted(first | second)
    everywhere = [dict(line.dense) for each in (*first.values(), *second.values()) for line in each.hypotheses]
    for sentence, candidates in both.items():
        lists = [each[sentence].hypotheses if sentence in each else () for each in (first, second)]
        own, other = ({line.text: line for line in hypotheses} for hypotheses in lists)
        assert [line.text for line in candidates.hypotheses] == list(own | other)
        known = {text: dict(line.dense) for text, line in other.items()}
        known |= {text: known.get(text, {}) | dict(line.dense) for text, line in own.items()}
        for line in candidates.hypotheses:
            expected = {"FromA": (float(line.text in own),), "FromB": (float(line.text in other),)}
            for name in ("L", "TM", "NMT"):
                here = [values[name] for values in known.values() if name in values]
                rows = here or [values[name] for values in everywhere if name in values]
                fill = tuple(min(column) if missing == "lowest" else mean(column) for column in zip(*rows, strict=True))
                expected[name] = known[line.text].get(name, fill)
            dense = dict(line.dense)
            assert list(dense) == ["L", "TM", "NMT", "FromA", "FromB"]
            assert dense == {name: pytest.approx(values, rel=1e-12) for name, values in expected.items()}
            sparse = [line.text in each and each[line.text].sparse for each in (other, own)]
            assert line.sparse == (sparse[0] or {}) | (sparse[1] or {})


@given(PAIRS, st.randoms())
@settings(max_examples=10)
def test_order_of_candidates_and_repeated_merging_do_not_matter(
    folder: Path, pair: tuple[str, str], random: Random
) -> None:
    """Reordering the second list does not change any line. Merging again does not change any value."""
    for missing in ("lowest", "mean"):
        once = merge_texts(folder, {"A": pair[0], "B": pair[1]}, missing)
        lines = pair[1].splitlines(keepends=True)
        random.shuffle(lines)
        lines.sort(key=lambda line: line[0])
        permuted = merge_texts(folder, {"A": pair[0], "B": "".join(lines)}, missing)
        assert sorted(permuted.split("\n")) == sorted(once.split("\n"))
        again = merge_texts(folder, {"C": once, "D": pair[1]}, missing)
        assert re.sub(r" FromC= 1 FromD= [01]", "", again) == once


@given(PAIRS)
@settings(max_examples=15)
def test_the_choice_of_the_first_decoder_does_not_change(folder: Path, pair: tuple[str, str]) -> None:
    both = read(merge_texts(folder, {"A": pair[0], "B": pair[1]}), folder)
    lists = read(pair[1], folder) | read(pair[0], folder)
    for sentence, candidates in both.items():
        first = lists[sentence]
        assert candidates.hypotheses[candidates.highest_total].text == first.hypotheses[first.highest_total].text


def test_candidates_are_counted_by_their_lists(write: Write) -> None:
    lists = {"A": str(write("A", "".join(MOSES))), "B": str(write("B", "".join(BEAM)))}
    sentences, origins = merge_lists(lists, str(write("merged", "")))
    assert (sentences, describe_origins("AB", origins)) == (3, "3 only in A, 3 only in B, 1 in both")
    assert origins == {("A",): 3, ("B",): 3, ("A", "B"): 1}
    _, more = merge_lists({**lists, "C": lists["B"]}, str(write("merged", "")))
    assert describe_origins("ABC", more) == "3 only in A, 0 only in B, 0 only in C, 4 in several"
