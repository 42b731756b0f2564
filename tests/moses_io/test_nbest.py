import gzip
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moses_io.files.errors import Fault, InputError
from moses_io.files.streams import Lines
from moses_io.files.text import has_marks
from moses_io.nbest import (
    EmptyLines,
    Order,
    check_id,
    pool,
    read_hypotheses,
    read_moses_output,
    read_nbest,
    without_marks,
)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("0 ||| b ||| LM0= 1 TM0= 1 2\n", "feature 'LM0' has 1 value, earlier lines have 2"),
        ("0 ||| b ||| LM0= 1 2\n", "feature 'TM0' is missing"),
        ("0 ||| b ||| LM0= 1 2 TM0= 1 2 X= 1\n", "feature 'X' is not in earlier lines"),
    ],
)
def test_every_line_has_the_features_of_the_first(tmp_path: Path, second: str, message: str) -> None:
    path = tmp_path / "dev.nbest"
    path.write_text("0 ||| a ||| LM0= 1 2 TM0= 1 2\n\n" + second)
    with pytest.raises(InputError) as caught:
        list(read_hypotheses(str(path)))
    assert str(caught.value).startswith(f"{path}:3: {message}")


def test_features_may_be_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("0 ||| a ||| LM0= 1 2 TM0= 3\n0 ||| b ||| TM0= 3 LM0= 1 2\n")
    assert len(list(read_hypotheses(str(path)))) == 2


@pytest.mark.parametrize(("lines", "extent"), [(2, "has 2 lines (ids from 0 to 1)"), (0, "is empty")])
def test_an_id_outside_the_reference_is_an_error(tmp_path: Path, lines: int, extent: str) -> None:
    path = tmp_path / "list"
    path.write_text("2 ||| a ||| L= 1\n")
    (sentence_list,) = read_nbest(str(path))
    with pytest.raises(InputError) as caught:
        check_id(sentence_list, lines, "reference")
    assert str(caught.value) == f"{path}:1: sentence 2 is beyond the reference, which {extent}"


def test_gaps_and_decreasing_ids_are_valid_and_repeated_ids_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("".join(f"{sentence} ||| a ||| L= 1\n" for sentence in (3, 3, 9, 4, 5, 0)))
    assert [sentence_list.sentence for sentence_list in read_nbest(str(path))] == [3, 9, 4, 5, 0]
    with path.open("a") as stream:
        stream.write("4 ||| a ||| L= 1\n")
    with pytest.raises(InputError, match=r":7: sentence 4 occurs again after other sentences.*--regroup"):
        list(read_nbest(str(path)))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30))
def test_repeated_ids_are_detected_in_any_order(tmp_path_factory: pytest.TempPathFactory, ids: list[int]) -> None:
    path = tmp_path_factory.mktemp("ids") / "list"
    path.write_text("".join(f"{sentence} ||| a ||| L= 1\n" for sentence in ids))
    runs = [sentence for k, sentence in enumerate(ids) if k == 0 or ids[k - 1] != sentence]
    if len(set(runs)) == len(runs):
        assert [sentence_list.sentence for sentence_list in read_nbest(str(path))] == runs
    else:
        with pytest.raises(InputError, match="occurs again"):
            list(read_nbest(str(path)))


@pytest.mark.parametrize("shuffled", [False, True])
def test_decreasing_and_shuffled_ids_take_linear_time(shuffled: bool) -> None:
    """With insertion at the front, 200,000 decreasing ids took 15 seconds."""
    ids, order = list(range(200_000, 0, -1)), Order()
    if shuffled:
        random.Random(1).shuffle(ids)
    start = time.process_time()
    for sentence in ids:
        order.check(sentence)
    assert time.process_time() - start < 3
    for sentence in ids[::1000]:
        with pytest.raises(Fault, match="occurs again"):
            order.check(sentence)


def test_read_the_sample_and_an_empty_list(tmp_path: Path, sample: Path) -> None:
    lists = list(read_nbest(str(sample / "dev.nbest.gz")))
    assert len(lists) == 400
    assert sum(len(sentence_list.hypotheses) for sentence_list in lists) == 36329
    empty = tmp_path / "empty"
    empty.write_bytes(b"\n")
    with pytest.raises(InputError, match="the list is empty"):
        list(read_nbest(str(empty)))


def test_the_sample_is_written_back_unchanged(sample: Path) -> None:
    path = sample / "test.nbest.gz"
    written = b"".join(hypothesis.line for hypothesis in read_hypotheses(str(path)))
    assert written == gzip.decompress(path.read_bytes())


def test_segmentation_marks_are_detected_and_errors(tmp_path: Path) -> None:
    for text in ("the |0-0| Zeug |1-1| ", "the |0-0,wa=0-0 ,total=0.49, LM0= -0.69 | "):
        assert has_marks(text)
    assert not has_marks("the 0-0 | a|b |x|")
    path = tmp_path / "list"
    path.write_text("0 ||| a ||| L= 1\n0 ||| a |0-0| ||| L= 1\n")
    with pytest.raises(InputError, match=r":2: segmentation marks"):
        list(without_marks(read_nbest(str(path))))


def test_lists_of_several_runs_are_pooled_by_id_and_text(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("3 ||| a ||| L= 1\n3 ||| a ||| L= 2\n0 ||| b ||| L= 3\n")
    second.write_text("0 ||| c ||| L= 4\n0 ||| b ||| L= 5\n7 ||| d ||| L= 6\n")
    pooled = list(pool([str(first), str(second)]))
    found = [(each.sentence, [(line.text, line.dense[0][1][0]) for line in each.hypotheses]) for each in pooled]
    assert found == [(3, [("a", 1), ("a", 2)]), (0, [("b", 3), ("c", 4)]), (7, [("d", 6)])]
    assert [each.place for each in pooled] == [f"{first}:1", f"{first}:3", f"{second}:3"]
    second.write_text("0 ||| c ||| M= 4\n")
    with pytest.raises(InputError, match="second:1: feature 'M' is not in earlier lines"):
        list(pool([str(first), str(second)]))


def test_a_mark_in_a_pooled_list_is_reported_with_its_file(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("0 ||| a ||| L= 1\n")
    second.write_text("0 ||| a ||| L= 1\n0 ||| b |0-0| ||| L= 2\n")
    assert len(list(pool([str(first), str(second)]))) == 1
    with pytest.raises(InputError, match=f"{second}:2: "):
        list(pool([str(first), str(second)], marks=False))


def test_empty_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    path, empty = tmp_path / "list", EmptyLines()
    path.write_text("0 ||| a ||| L= 1\n\r\n0 ||| b ||| L= 1\n\n\n")
    (only,) = read_nbest(str(path), empty)
    assert ([hypothesis.number for hypothesis in only.hypotheses], str(empty)) == (
        [1, 3],
        "3 empty lines, the first is line 2",
    )


LIST = ["0 ||| a ||| L= 1 ||| -3", "0 ||| b ||| L= 1 ||| -1", "0 ||| a ||| L= 1 ||| -2", "1 ||| c ||| L= 1 ||| -1"]


def test_the_default_moses_choice_has_the_highest_total() -> None:
    first, _ = read_nbest(Lines("list", LIST))
    assert (first.moses_choice, first.moses_text) == (1, "b")


def test_the_moses_choice_is_the_candidate_in_its_output(tmp_path: Path) -> None:
    """If two candidates have this text, the one with the higher total is used.

    Moses prints a space at the end of each line.
    """
    path = tmp_path / "out"
    path.write_text("a \nd\n")
    lists = read_moses_output(str(path)).add_to(read_nbest(Lines("list", LIST)))
    assert [(each.moses_choice, each.moses_text) for each in lists] == [(2, "a"), (None, "d")]


def test_the_first_of_candidates_with_equal_totals_is_the_moses_choice() -> None:
    """Both without the output of Moses and with an output that two candidates have."""
    lines = ["0 ||| b ||| L= 1 ||| -2", "0 ||| a ||| L= 1 ||| -1", "0 ||| a ||| L= 2 ||| -1", "0 ||| c ||| L= 1 ||| -1"]
    (listed,) = read_nbest(Lines("list", lines))
    assert (listed.moses_choice, replace(listed, moses_output="a").moses_choice) == (1, 1)


def test_a_candidate_without_a_total_is_not_the_moses_choice() -> None:
    (listed,) = read_nbest(Lines("list", ["0 ||| a ||| L= 1", "0 ||| b ||| L= 1 ||| x", "0 ||| c ||| L= 1 ||| -9"]))
    assert (listed.moses_choice, listed.moses_text) == (2, "c")


def test_only_ascii_spaces_around_the_moses_output_are_removed() -> None:
    """A no-break space belongs to the token before it."""
    output = read_moses_output(Lines("out", [" a\u00a0 "]))
    (listed,) = output.add_to(read_nbest(Lines("list", ["0 ||| a ||| L= 1 ||| 0", "0 ||| a\u00a0 ||| L= 1 ||| -1"])))
    assert (listed.moses_choice, listed.moses_text) == (1, "a\u00a0")


@pytest.mark.parametrize(
    ("content", "message"),
    [("a\n", r"out has 1 line, .*source has 2$"), ("a\nb |0-1|\n", "out:2: segmentation marks such as")],
)
def test_the_moses_output_must_have_one_line_per_sentence(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "out").write_text(content)
    (tmp_path / "source").write_text("x\ny\n")
    with pytest.raises(InputError, match=message):
        read_moses_output(str(tmp_path / "out")).check(2, str(tmp_path / "source"))


def test_an_id_outside_the_moses_output_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a\n")
    with pytest.raises(
        InputError, match=r"list:4: sentence 1 is beyond the output of Moses in .*out, which has 1 line"
    ):
        list(read_moses_output(str(tmp_path / "out")).add_to(read_nbest(Lines("list", LIST))))
