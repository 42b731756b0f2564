import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moses_io.errors import Fault, InputError
from moses_io.hypothesis import parse_line
from moses_io.text import encode
from moses_io.weights import read_weights, weight_files, write_weights


def read(tmp_path: Path, text: str) -> dict[str, tuple[float, ...]]:
    path = tmp_path / "weights"
    path.write_text(text)
    return read_weights(str(path))


def test_moses_ini(sample: Path) -> None:
    weights = read_weights(str(sample / "moses.ini"))
    assert {name: len(values) for name, values in weights.items()} == {
        "LexicalReordering0": 6, "Distortion0": 1, "LM0": 1, "WordPenalty0": 1, "PhrasePenalty0": 1,
        "TranslationModel0": 4, "UnknownWordPenalty0": 1,
    }  # fmt: skip
    assert weights["LM0"] == (0.14203690836142,)


def test_sections_comments_and_later_lines(tmp_path: Path) -> None:
    text = (
        "# head\n[x]\nA= 9\n[weight]\n# inside\nA= 1 2 # behind\nA_s= 0.5\n\n[weight] more\nA= 3 4\nB= 1\n[y]\nB= 7\n"
    )
    assert read(tmp_path, text) == {"A": (3.0, 4.0), "A_s": (0.5,), "B": (1.0,)}


def test_a_dense_weight_file_repeats_names(tmp_path: Path) -> None:
    assert read(tmp_path, "A= 1\nA= 2\nB= 3\n") == {"A": (1.0, 2.0), "B": (3.0,)}


def test_what_is_untuneable_is_no_weight(tmp_path: Path) -> None:
    text = "Distortion0= 0.3\nUnknownWordPenalty0 UNTUNEABLE\npl=\nTM0= 0.2 UNTUNEABLECOMPONENT 0.1\n"
    assert read(tmp_path, text) == {"Distortion0": (0.3,), "TM0": (0.2, 0.1)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A= 1\nA=0.5\n", r":2: expected 'Name= value …', found 'A=0.5'"),
        ("[weight]\nA= x\n", ":2: weights of 'A': expected a number, found 'x'"),
        ("[weight]\nA= 1 nan\n", r":2: weights of 'A': not finite \(nan\)"),
        ("A= 1e39\n", ":1: weights of 'A': '1e39' is larger than 3.4e"),
        ("A= UNTUNEABLECOMPONENT\n", ":1: weights of 'A': expected numbers, found none"),
        ("[weight]\nA= 1_0\n", ":2: weights of 'A': expected a number, found '1_0'"),
        ("[weight]\nA=\n", "no weights"),
        ("[other]\nA= 1\n", "no weights"),
        ("", "no weights"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    weights = {"A": (0.1, -0.25), "pl_s2": (1e-9,), "wt_#~#": (0.5,)}
    path = tmp_path / "weights.ini"
    write_weights(str(path), weights, ["signature"])
    assert read_weights(str(path)) == weights
    assert path.read_text().startswith("# signature\n\n[weight]\nA= 0.1 -0.25\n")


def test_sparse_weights_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    assert read(tmp_path, "# comment\ns_a 0.5\ns_b=c -1\n") == {"s_a": (0.5,), "s_b=c": (-1.0,)}
    (tmp_path / "sparse").write_text("s_a 0.5\ns_b 2\n")
    assert read(tmp_path, "[weight-file]\nsparse\n[weight]\nA= 1\ns_b= 3\n") == {
        "s_a": (0.5,), "s_b": (3.0,), "A": (1.0,),
    }  # fmt: skip


def test_numbers_alone_are_the_first_line_of_init_opt(tmp_path: Path) -> None:
    assert read(tmp_path, "0.5 -1 2e-3\n0 0 0\n1 1 1\n") == {"Unlabelled": (0.5, -1.0, 0.002)}


def test_sections_from_before_2013(tmp_path: Path) -> None:
    text = "[weight-d]\n0.3\n0.1\n\n[weight-l]\n0.5\n[weight-t]\n0.2\n0.2\n[weight-w]\n-1\n[ttable-file]\n0 0 0 5 x\n"
    assert read(tmp_path, text) == {"d": (0.3, 0.1), "lm": (0.5,), "tm": (0.2, 0.2), "w": (-1.0,)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1).filter(str.strip),
    st.sampled_from(["", "#", "["]),
)
def test_what_a_list_names_is_read_back_or_refused(tmp_path: Path, name: str, start: str) -> None:
    """Of dense features and of sparse ones, whatever their names."""
    try:
        line = parse_line(encode(f"0 ||| a ||| {start}{name}= 1 {start}{name}_x= 2 ||| 0"), 1)
    except Fault:
        return
    weights = {**{name: (0.5,) * len(values) for name, values in line.dense}, **dict.fromkeys(line.sparse, (0.25,))}
    path = str(tmp_path / "weights.ini")
    try:
        write_weights(path, weights, [])
    except InputError as error:
        assert "an ini cannot carry" in str(error)
    else:
        assert read_weights(path) == weights


def test_a_comment_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "w"
    write_weights(str(path), {"L": (1.0,)}, ["imported from a\n[weight]\nX= 1"])
    assert read_weights(str(path)) == {"L": (1.0,)}


def test_a_weight_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the weight of 'L' is not finite"):
        write_weights(str(tmp_path / "w"), {"L": (float("nan"),)}, [])


def test_weight_files_of_an_ini(tmp_path: Path) -> None:
    (tmp_path / "m.ini").write_text("[weight-file]\nsparse\n[weight]\nL= 1\n")
    (tmp_path / "sparse").write_text("T_a 0.5\n")
    assert weight_files(str(tmp_path / "m.ini")) == [str(tmp_path / "m.ini"), str(tmp_path / "sparse")]
    (tmp_path / "sparse").write_text("[weight-file]\nsparse\n")
    with pytest.raises(InputError, match="sparse: names itself as its weight file"):
        read_weights(str(tmp_path / "m.ini"))


def test_weights_are_a_plain_file(tmp_path: Path) -> None:
    pipe, ini = tmp_path / "pipe", tmp_path / "moses.ini"
    os.mkfifo(pipe)
    ini.write_text("[weight-file]\npipe\n[weight]\nL= 1\n")
    for path in (pipe, ini):
        with pytest.raises(InputError, match="pipe: a pipe or a device, expected a plain file"):
            read_weights(str(path))
    with pytest.raises(InputError, match="/dev/zero: a pipe or a device, expected a plain file"):
        read_weights("/dev/zero")
