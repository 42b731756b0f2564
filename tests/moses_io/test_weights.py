import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moses_io.files.errors import Fault, InputError
from moses_io.files.text import encode
from moses_io.hypothesis import parse_line
from moses_io.weights import check_weights, read_weight_file, read_weights, weight_files, write_weights

Write = Callable[[str, str], Path]


def read(tmp_path: Path, text: str) -> dict[str, tuple[float, ...]]:
    path = tmp_path / "weights"
    path.write_text(text)
    return read_weights(str(path))


def test_read_a_moses_ini(sample: Path) -> None:
    weights = read_weights(str(sample / "moses.ini"))
    assert {name: len(values) for name, values in weights.items()} == {
        "LexicalReordering0": 6, "Distortion0": 1, "LM0": 1, "WordPenalty0": 1, "PhrasePenalty0": 1,
        "TranslationModel0": 4,
    }  # fmt: skip
    assert weights["LM0"] == (0.14203690836142,)


def test_sections_comments_and_later_lines(tmp_path: Path) -> None:
    text = (
        "# head\n[x]\nA= 9\n[weight]\n# inside\nA= 1 2 # behind\nA_s= 0.5\n\n[weight] more\nA= 3 4\nB= 1\n[y]\nB= 7\n"
    )
    assert read(tmp_path, text) == {"A": (3.0, 4.0), "A_s": (0.5,), "B": (1.0,)}


def test_untuneable_weights_are_omitted(tmp_path: Path) -> None:
    text = "Distortion0= 0.3\nUnknownWordPenalty0 UNTUNEABLE\npl=\nTM0= 0.2 UNTUNEABLECOMPONENT 0.1\n"
    assert read(tmp_path, text) == {"Distortion0": (0.3,), "TM0": (0.2, 0.1)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A= 1\nA=0.5\n", r":2: expected 'Name= value …', found 'A=0.5'"),
        ("[weight]\nA= x\n", ":2: weights of 'A': expected a number, found 'x'"),
        ("[weight]\nA= 1 nan\n", r":2: weights of 'A': not finite \(nan\)"),
        ("A= 1e39\n", ":1: weights of 'A': the absolute value of '1e39' exceeds 3.4e"),
        ("A= UNTUNEABLECOMPONENT\n", "no weights"),
        ("[weight-overwrite]\n1 A= 2\n", ":2: expected 'Name= value …', found '1'"),
        ("[weight-overwrite]\nA= y\n", ":2: weights of 'A': expected a number, found 'y'"),
        ("[weight-overwrite]\nA= 1\nB= y\n", ":3: weights of 'B': expected a number, found 'y'"),
        ("[weight]\nA= 1 2\n[weight-overwrite]\nA= x x x\n", ":4: weights of 'A': expected a number, found 'x'"),
        ("[weight]\nA= 1_0\n", ":2: weights of 'A': expected a number, found '1_0'"),
        ("[weight]\nA=\n", "no weights"),
        ("[weight]\npl_s1 0.25\n", ":2: expected 'Name= value …', found 'pl_s1 0.25'"),
        ("[other]\nA= 1\n", "no weights"),
        ("", "no weights"),
    ],
)
def test_wrong_weight_files_are_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_written_weights_are_read_back(tmp_path: Path) -> None:
    weights = {"A": (0.1, -0.25), "pl_s2": (1e-9,), "wt_#~#": (0.5,)}
    path = tmp_path / "weights.ini"
    write_weights(str(path), weights, ["signature"])
    assert read_weights(str(path)) == weights
    assert path.read_text().startswith("# signature\n\n[weight]\nA= 0.1 -0.25\n")


def test_nine_digits_of_a_weight_are_written(tmp_path: Path) -> None:
    """They determine a number in float32, with which Moses computes."""
    weights = {"A": (0.123456789, -1234.56789), "s_x": (9.87654321e-9,)}
    write_weights(str(tmp_path / "w"), weights, [])
    assert read_weights(str(tmp_path / "w")) == weights


def test_sparse_weights_in_a_separate_file(tmp_path: Path) -> None:
    assert read(tmp_path, "# comment\ns_a 0.5\ns_b=c -1\n") == {"s_a": (0.5,), "s_b=c": (-1.0,)}
    (tmp_path / "sparse").write_text("s_a 0.5\ns_b 2\n")
    assert read(tmp_path, "[weight-file]\nsparse\n[weight]\nA= 1\ns_b= 3\n") == {
        "s_a": (0.5,), "s_b": (3.0,), "A": (1.0,),
    }  # fmt: skip


def test_lines_of_numbers_are_read_like_init_opt(tmp_path: Path) -> None:
    assert read(tmp_path, "0.5 -1 2e-3\n0 0 0\n1 1 1\n") == {"Unlabelled": (0.5, -1.0, 0.002)}


def test_sections_from_before_2013(tmp_path: Path) -> None:
    text = "[weight-d]\n0.3\n0.1\n\n[weight-l]\n0.5\n[weight-t]\n0.2\n0.2\n[weight-w]\n-1\n[ttable-file]\n0 0 0 5 x\n"
    assert read(tmp_path, text) == {"d": (0.3, 0.1), "lm": (0.5,), "tm": (0.2, 0.2), "w": (-1.0,)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(st.characters(exclude_characters="\n", codec="utf-8"), min_size=1).filter(str.strip),
    st.sampled_from(["", "#", "["]),
)
def test_weights_of_any_feature_names_are_read_back_or_errors(tmp_path: Path, name: str, start: str) -> None:
    """This holds for dense and sparse features of a valid list."""
    try:
        line = parse_line(encode(f"0 ||| a ||| {start}{name}= 1 {start}{name}_x= 2 ||| 0"), 1)
    except Fault:
        return
    weights = {**{name: (0.5,) * len(values) for name, values in line.dense}, **dict.fromkeys(line.sparse, (0.25,))}
    path = str(tmp_path / "weights.ini")
    try:
        write_weights(path, weights, [])
    except InputError as error:
        assert "an ini cannot hold" in str(error)
    else:
        assert read_weights(path) == weights


def test_line_breaks_in_a_comment_are_harmless(tmp_path: Path) -> None:
    path = tmp_path / "w"
    write_weights(str(path), {"L": (1.0,)}, ["imported from a\n[weight]\nX= 1"])
    assert read_weights(str(path)) == {"L": (1.0,)}


@pytest.mark.parametrize("value", [1e39, -1e39, float("-inf"), float("nan")])
def test_weights_beyond_the_numbers_of_moses_are_errors(tmp_path: Path, value: float) -> None:
    with pytest.raises(InputError, match=r"weights of 'L': not finite, or an absolute value exceeds 3\.4e\+38"):
        check_weights({"L": [1.0, value]})
    with pytest.raises(InputError, match=r"the weight of 'L' is not finite, or its absolute value exceeds 3\.4e\+38"):
        write_weights(str(tmp_path / "w"), {"L": (1.0, value)}, [])


def test_weight_files_of_an_ini(tmp_path: Path) -> None:
    (tmp_path / "m.ini").write_text("[weight-file]\nsparse\n[weight]\nL= 1\n")
    (tmp_path / "sparse").write_text("T_a 0.5\n")
    assert weight_files(str(tmp_path / "m.ini")) == [str(tmp_path / "m.ini"), str(tmp_path / "sparse")]
    (tmp_path / "sparse").write_text("[weight-file]\nsparse\n")
    with pytest.raises(InputError, match=r"sparse:1: expected 'name value' of a sparse feature, found '.weight-f"):
        read_weights(str(tmp_path / "m.ini"))


def test_pipes_and_devices_as_weight_files_are_errors(tmp_path: Path) -> None:
    pipe, ini = tmp_path / "pipe", tmp_path / "moses.ini"
    os.mkfifo(pipe)
    ini.write_text("[weight-file]\npipe\n[weight]\nL= 1\n")
    for path in (pipe, ini):
        with pytest.raises(InputError, match="pipe: a pipe or a device, expected a plain file"):
            read_weights(str(path))
    with pytest.raises(InputError, match="/dev/zero: a pipe or a device, expected a plain file"):
        read_weights("/dev/zero")


def test_the_name_of_a_sparse_feature_is_the_first_word(tmp_path: Path) -> None:
    """Like FVector::load in moses/FeatureVector.cpp: target words `=` and `#` are not removed from names."""
    sparse = "# comment\nwt_a~= 5\nwt_b~b\t0.1\n\nwt_#~# 1\nwt_=~= -2 # later\n"
    expected = {"wt_a~=": (5.0,), "wt_b~b": (0.1,), "wt_#~#": (1.0,), "wt_=~=": (-2.0,)}
    assert read(tmp_path, sparse) == expected
    (tmp_path / "sparse").write_text(sparse)
    assert read(tmp_path, "[weight-file]\nsparse\n[weight]\nA= 1\n") == {**expected, "A": (1.0,)}


def test_sparse_features_in_a_weight_section_end_with_an_equals_sign(tmp_path: Path) -> None:
    expected = {"wt_a~=": (5.0,), "wt_b~b": (1.0,)}
    assert read(tmp_path, "[weight]\nwt_a~== 5\nwt_b~b= 1\n") == expected
    assert read(tmp_path, "wt_a~== 5\nwt_b~b= 1\n") == expected


def test_a_repeated_sparse_name_has_the_last_value(tmp_path: Path) -> None:
    """FVector::load overwrites the value. In a dense file, a repeated name has several values."""
    assert read(tmp_path, "s_a 1\ns_b 2\ns_a 3\n") == {"s_a": (3.0,), "s_b": (2.0,)}
    assert read(tmp_path, "A= 1\ns_a= 1\nA= 2\ns_a= 3\n") == {"A": (1.0, 2.0), "s_a": (3.0,)}
    (tmp_path / "sparse").write_text("s_a 1\nNMT 2\nNMT 3\n")
    assert read(tmp_path, "[weight-file]\nsparse\n[weight]\nA= 1\n")["NMT"] == (3.0,)


@pytest.mark.parametrize("line", ["s_a", "s_a 1 2", "s_a x"])
def test_wrong_lines_of_a_sparse_weight_file_are_errors(tmp_path: Path, line: str) -> None:
    (tmp_path / "sparse").write_text(f"s_b 1\n{line}\n")
    with pytest.raises(InputError, match=r"sparse:2: (expected 'name value'|weights of 's_a': expected a number)"):
        read(tmp_path, "[weight-file]\nsparse\n[weight]\nA= 1\n")


def test_a_sparse_weight_file_is_searched_in_the_working_directory_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like Moses (moses/StaticData.cpp:221). The folder of the ini is searched next."""
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "moses.ini").write_text("[weight-file]\nsparse\n[weight]\nL= 1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"moses.ini:2: sparse: no such file, neither in the working directory nor"):
        read_weight_file("tuned/moses.ini")
    (tmp_path / "tuned" / "sparse").write_text("s_a 1\n")
    content = read_weight_file("tuned/moses.ini")
    assert (content.weights["s_a"], content.files, content.warnings) == (
        (1.0,),
        ("tuned/moses.ini", "tuned/sparse"),
        (),
    )
    (tmp_path / "sparse").write_text("s_a 1\n")
    assert read_weight_file("tuned/moses.ini").warnings == ()
    (tmp_path / "sparse").write_text("s_a 2\n")
    content = read_weight_file("tuned/moses.ini")
    assert (content.weights["s_a"], content.files) == ((2.0,), ("tuned/moses.ini", "sparse"))
    warning = "tuned/moses.ini:2: weights are read from sparse, as Moses does, and not from tuned/sparse, which differs"
    assert content.warnings == (warning,)


def test_sparse_weight_files_of_equal_size_and_time_are_compared_by_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "moses.ini").write_text("[weight-file]\nsparse\n[weight]\nL= 1\n")
    for folder, value in ((tmp_path, 1), (tmp_path / "tuned", 2)):
        (folder / "sparse").write_text(f"s_a {value}\n")
        os.utime(folder / "sparse", (0, 0))
    monkeypatch.chdir(tmp_path)
    (warning,) = read_weight_file("tuned/moses.ini").warnings
    assert warning.endswith("not from tuned/sparse, which differs")


def test_weights_that_are_added_and_overwritten(tmp_path: Path) -> None:
    """`[weight-add]` is read before `[weight]`. `[weight-overwrite]` is one line, and `x` keeps a component."""
    text = "[weight-overwrite]\nA= 9 x\nB=\n8\n[weight]\nA= 1 2\nC= 3\n[weight-add]\nC= 7\nD= 4\n"
    assert read(tmp_path, text) == {"A": (9.0, 2.0), "B": (8.0,), "C": (3.0,), "D": (4.0,)}
    assert read(tmp_path, "[weight-overwrite]\nA= 1\nB= 2\nA= 3\n") == {"A": (3.0,), "B": (2.0,)}


def test_comments_in_other_sections_than_weights(tmp_path: Path) -> None:
    path = tmp_path / "ini"
    path.write_text("[weight-d]\n0.3#c\n[feature]\nA name=P tuneable=false#c\n#c\n[weight]\nP= 1\n")
    content = read_weight_file(str(path))
    assert (content.weights, list(content.untuneable)) == ({"d": (0.3,)}, ["P"])


def test_declared_features_without_weights_are_named(tmp_path: Path) -> None:
    path = tmp_path / "ini"
    path.write_text("[feature]\nPhrasePenalty\nKENLM name=LM0\nA name=P tuneable=false\n[weight]\nLM0= 1\n")
    assert read_weight_file(str(path)).unweighted == ("PhrasePenalty0",)


def test_comments_directly_after_a_value(tmp_path: Path) -> None:
    """`#` starts a comment anywhere in an ini, except in names of sparse features."""
    assert read(tmp_path, "[weight]\nA= 1 0.5#c\nB= 2 # 3\nw_#~#= 1\n") == {
        "A": (1.0, 0.5), "B": (2.0,), "w_#~#": (1.0,),
    }  # fmt: skip
    assert read(tmp_path, "w_a 1 #c\nw_b 2\n") == {"w_a": (1.0,), "w_b": (2.0,)}


def test_a_tab_may_precede_a_comment(tmp_path: Path) -> None:
    (tmp_path / "sparse").write_text("s_a 0.5\n")
    text = "[weight-file]\nsparse\t# of run 5\n[weight]\t# dense\nA= 1 2\t# 3\n"
    assert read(tmp_path, text) == {"s_a": (0.5,), "A": (1.0, 2.0)}


def test_a_byte_order_mark_before_an_ini(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeff[weight]\nA= 1\n") == {"A": (1.0,)}


def test_more_sections_from_before_2013(tmp_path: Path) -> None:
    """Labels as in moses/Parameter.cpp. The unknown word penalty is never in a list."""
    text = "[weight-generation]\n0.3\n0\n[weight-i]\n1\n[weight-lr]\n2\n[weight-lex]\n3\n[weight-u]\n4\n"
    assert read(tmp_path, text) == {"g": (0.3, 0.0), "I": (1.0,), "lr": (2.0,), "lex": (3.0,)}
    assert read_weight_file(str(tmp_path / "weights")).untuneable["UnknownWordPenalty0"].weights == (4.0,)
