import pickle

import pytest

from moses_io.files.errors import InputError, counted, printable, shown


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a \x1b[2J\x07\r\n\t\x00", r"a \x1b[2J\x07\r\n\t\x00"),
        ("\x7f\x9b31m\x85", r"\x7f\x9b31m\x85"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        (b"caf\xe9".decode(errors="surrogateescape"), r"caf\udce9"),
        ("בית \u200fسلم \u2028é 家 \\n", "בית \u200fسلم \u2028é 家 \\n"),
    ],
)
def test_only_control_characters_are_escaped(text: str, wanted: str) -> None:
    assert printable(text) == wanted == printable(wanted)


def test_quoted_input_is_truncated_at_80_characters() -> None:
    assert shown("it's\x1b") == '"it\'s\\x1b"'
    assert (shown("x" * 80), shown("x" * 81)) == (f"'{'x' * 80}'", f"'{'x' * 80}'…")
    assert (shown(None), shown([1.5])) == ("None", "[1.5]")
    assert shown([1] * 100) == f"{str([1] * 100)[:80]}…"


def test_counted_nouns_have_the_correct_plural() -> None:
    assert (counted(0, "value"), counted(1, "value"), counted(2, "value")) == ("0 values", "1 value", "2 values")


def test_an_error_message_is_one_line() -> None:
    error = InputError("a\nb\x1b[2J: no such file")
    assert str(error) == r"a\nb\x1b[2J: no such file" == str(pickle.loads(pickle.dumps(error)))
