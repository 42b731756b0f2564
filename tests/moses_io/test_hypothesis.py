import re

import pytest

from moses_io.files.errors import Fault
from moses_io.hypothesis import UNLABELLED, LineParser, parse_line, with_features, with_total

PLAIN = (
    b"0 ||| the house  ||| Distortion0= 0 LM0= -2.7631 TM0= -0.1 -0.2 pl_s2= 1 ||| 0.579248 ||| 0-1=0-1 ||| 0-0 1-1 \n"
)

LINES = {
    "segmentation and alignment": PLAIN,
    "chart": b"0 ||| the house  |||  LM0= -8.059 ||| -95.143 ||| 0-0 1-1 ||| [S [X]]\n",
    "no space before the bars": b"12||| a b  ||| LM0= -1e-05 ||| -1\n",
    "no total": b"3 ||| a ||| LM0= 1\n",
    "empty hypothesis": b"1 |||  ||| LM0= 0 ||| 0\n",
    "moses2": b"1 ||| a b ||| LM0= 0 TM0= 1 2 ||| 0\n",
    "windows line end": b"1 ||| a ||| LM0= 0 ||| 0\r\n",
    "no line end": b"1 ||| a ||| LM0= 0 ||| 0",
    "no features": b"1 ||| a ||| ||| 0\n",
    "unlabelled": b"0 ||| a ||| 0 -8.05905 -3 pl_t1= 3 ||| -101.1\n",
    "before 2013": b"0 ||| a b ||| d: -12 -5.9 lm: -37.2 w: -16 tm: -13.1 -25.1 ||| -9\n",
    "not UTF-8": b"0 ||| caf\xe9 \x85 ||| LM0= -3 ||| -1\n",
}


FAULTS = (
    b"0 ||| a ||| LM0= -3x ||| 0\n",
    b"0 ||| a ||| LM0= nan ||| 0\n",
    b"0 ||| a ||| LM0= 1e99 ||| 0\n",
    b"0 ||| a ||| LM0= -1e99 ||| 0\n",
    b"0 ||| a ||| LM0= 1_0 ||| 0\n",
    "0 ||| a ||| LM0= \u0663 ||| 0\n".encode(),
    b"0 ||| a ||| LM0= ||| 0\n",
    b"0 ||| a ||| LM0=1 ||| 0\n",
    b"0 ||| a ||| LM0= 1 LM0= 2 ||| 0\n",
    b"x ||| a ||| LM0= 1 ||| 0\n",
    b"1234567890123456789 ||| a ||| LM0= 1 ||| 0\n",
    b"0 ||| a\n",
)


@pytest.mark.parametrize("before", LINES.values(), ids=LINES)
def test_parsing_does_not_depend_on_the_previous_line(before: bytes) -> None:
    """The parser is optimized for lines with the labels and numbers of values of the previous line."""
    for line in (*LINES.values(), before.replace(b" -", b"  +"), before.replace(b"= ", b"=\t"), *FAULTS):
        parser = LineParser()
        parser.parse(before, 1)
        try:
            expected = parse_line(line, 2)
        except Fault as fault:
            with pytest.raises(Fault, match=f"^{re.escape(str(fault))}$"):
                parser.parse(line, 2)
        else:
            assert parser.parse(line, 2) == expected


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_is_written_back_unchanged(line: bytes) -> None:
    assert with_features(parse_line(line, 1), []) == line


def test_dense_and_sparse_features() -> None:
    hypothesis = parse_line(b"7 ||| a ||| A= 1 2 A_x= 3 NN_y= -1 -2 p_=a,~= 0 ||| 1\n", 1)
    assert hypothesis.sentence == 7
    assert hypothesis.dense == (("A", (1.0, 2.0)), ("NN_y", (-1.0, -2.0)))
    assert hypothesis.sparse == {"A_x": 3.0, "p_=a,~": 0.0}


def test_labels_from_before_2013() -> None:
    old = parse_line(LINES["before 2013"], 1)
    assert old.dense == (("d", (-12.0, -5.9)), ("lm", (-37.2,)), ("w", (-16.0,)), ("tm", (-13.1, -25.1)))
    assert parse_line(with_features(old, [b"NMT= -3"]), 1).dense[-1] == ("NMT", (-3.0,))


def test_values_before_any_name_are_unlabelled() -> None:
    hypothesis = parse_line(LINES["unlabelled"], 1)
    assert hypothesis.dense == ((UNLABELLED, (0.0, -8.05905, -3.0)),)
    assert hypothesis.sparse == {"pl_t1": 3.0}


def test_dense_values_after_a_sparse_feature_are_unlabelled() -> None:
    hypothesis = parse_line(b"0 ||| a ||| 0 -8.05905 pl_t1= 3 -3 3 pl_t2= 1 -0.44 ||| -101.1\n", 1)
    assert hypothesis.dense == ((UNLABELLED, (0.0, -8.05905, -3.0, 3.0, -0.44)),)
    assert hypothesis.sparse == {"pl_t1": 3.0, "pl_t2": 1.0}
    written = parse_line(b"0 ||| a ||| Unlabelled= 1 A_b= 3 4 ||| 0\n", 1)
    assert written.dense == ((UNLABELLED, (1.0,)), ("A_b", (3.0, 4.0)))


def test_text_and_total() -> None:
    assert parse_line(PLAIN, 1).text == "the house"
    assert parse_line(PLAIN, 1).total == 0.579248
    assert parse_line(LINES["empty hypothesis"], 1).text == ""
    assert parse_line(LINES["no total"], 1).total is None
    assert parse_line(LINES["windows line end"], 1).total == 0.0
    assert parse_line("0 ||| a\u00a0b\u2028c ||| L= 1\n".encode(), 1).text == "a\u00a0b\u2028c"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"0 ||| a b\n", "expected at least 3 fields between '|||', found 2"),
        (b"x ||| a ||| LM0= 1\n", "expected a sentence id, found 'x'"),
        (b"\xef\xbb\xbf0 ||| a ||| LM0= 1\n", "expected a sentence id"),
        (b"1_0 ||| a ||| LM0= 1\n", "expected a sentence id"),
        (b"0 ||| a ||| LM0= nan\n", "feature 'LM0': not finite (nan)"),
        (b"0 ||| a ||| LM0= 1 -inf\n", "feature 'LM0': not finite (-inf)"),
        (b"0 ||| a ||| LM0= 1e999\n", "feature 'LM0': the absolute value of '1e999' exceeds 3.4e+38"),
        (b"0 ||| a ||| LM0= -1e308\n", "'-1e308' exceeds 3.4e+38, the limit of float32 in Moses"),
        (b"9" * 5000 + b" ||| a ||| LM0= 1\n", f"expected a sentence id, found '{'9' * 80}'…"),
        (b"0 ||| a ||| \x1b[2J= x\n", r"feature '\x1b[2J': expected a number, found 'x'"),
        ("0 ||| a ||| LM0= \u202e1\n".encode(), r"expected a number, found '\u202e1'"),
        (b"0 ||| a ||| LM0= 1,5\n", "feature 'LM0': expected a number, found '1,5'"),
        (b"0 ||| a ||| LM0= 0x10\n", "expected a number, found '0x10'"),
        (b"0 ||| a ||| LM0= 1_0\n", "expected a number, found '1_0'"),
        (b"0 ||| a ||| a_b=1.5\n", "expected features such as 'LM0= -2.5', found 'a_b=1.5'"),
        (b"0 ||| a ||| LM0= 1 = 2\n", "a '=' without a feature name before it"),
        (b"0 ||| a ||| LM0= TM0= 1\n", "feature 'LM0' has no value"),
        (b"0 ||| a ||| LM0= 1 TM0= 1 LM0= 2\n", "feature 'LM0' occurs twice"),
        (b"0 ||| a ||| x_y= 1 x_y= 2\n", "feature 'x_y' occurs twice"),
        (b"0 ||| a ||| d: 0 3: -3\n", "feature 'd': expected a number, found '3:'"),
        (b"0 ||| a ||| b ||| LM0= 1\n", "third field: expected features such as 'LM0= -2.5', found 'b'"),
        (b"0 ||| a ||| LM0=-2.5\n", "third field: expected features such as 'LM0= -2.5', found 'LM0=-2.5'"),
        (b"0 ||| a ||| lm0: -2.5\n", "third field: expected features such as 'LM0= -2.5', found 'lm0:'"),
        (b"0 ||| a ||| 1 nan\n", "third field: not finite (nan)"),
        (b"0 ||| a ||| 1 1e999\n", "third field: the absolute value of '1e999' exceeds 3.4e+38"),
    ],
)
def test_wrong_lines_are_errors(line: bytes, message: str) -> None:
    with pytest.raises(Fault) as caught:
        parse_line(line, 1)
    assert message in str(caught.value)


def test_features_are_appended_to_the_third_field() -> None:
    added = [b"NMT= -3.5", b"LMbig= -31.2 1"]
    assert with_features(parse_line(PLAIN, 1), added) == PLAIN.replace(b"= 1 |||", b"= 1 NMT= -3.5 LMbig= -31.2 1 |||")
    for line in LINES.values():
        again = parse_line(with_features(parse_line(line, 1), added), 1)
        assert again.dense[-2:] == (("NMT", (-3.5,)), ("LMbig", (-31.2, 1.0)))
        assert again.line.replace(b" NMT= -3.5 LMbig= -31.2 1", b"") == line


def test_a_total_is_replaced_or_added() -> None:
    assert with_total(parse_line(PLAIN, 1), "7") == PLAIN.replace(b"0.579248", b"7")
    assert with_total(parse_line(LINES["windows line end"], 1), "7").endswith(b"LM0= 0 ||| 7\r\n")
    assert with_total(parse_line(LINES["no total"], 1), "7") == b"3 ||| a ||| LM0= 1 ||| 7\n"
