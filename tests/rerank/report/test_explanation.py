from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

LIST = """\
0 ||| x ||| L= 1 T= 1 2 ||| 0
7 ||| a b ||| L= -1 T= 0 1 s_x= 2 ||| -1
7 ||| a c ||| L= -3 T= 2 1 ||| -2
7 ||| a d ||| L= -9 T= 2 1 ||| -3
"""


@pytest.fixture
def explain(command: Command, write: Write) -> Callable[..., tuple[int, list[str], str]]:
    files = (write("list", LIST), "--weights", write("w", "[weight]\nL= 0.5\nT= 1 2\ns_x= 0.1\n"))

    def run(*arguments: object) -> tuple[int, list[str], str]:
        status, out, err = command("explain", *files, *arguments)
        return status, out.decode().split("\n"), err

    return run


def test_contributions_add_up(explain: Callable[..., tuple[int, list[str], str]], write: Write) -> None:
    """The scores are 1.7 and 2.5. The second candidate is chosen, and the first has the highest total."""
    status, lines, _ = explain("--sentence", 7, "--source", write("src", "s\tt\n" * 8))
    assert status == 0
    assert lines[0] == "sentence 7, 3 candidates"
    assert lines[1].split() == ["source", "s", "t"]
    assert lines[2].startswith("  candidate  a c   (number 2, score 2.5000)")
    assert lines[3].startswith("  against    a b   (number 1, score 1.7000)")
    rows = [line.split() for line in lines[5:] if line]
    assert rows == [
        ["T.0", "2", "0", "1", "+2.0000"],
        ["T.1", "1", "1", "2", "+0.0000"],
        ["s_x", "0", "2", "0.1", "-0.2000"],
        ["L", "-3", "-1", "0.5", "-1.0000"],
        ["sum", "+0.8000"],
    ]


def test_comparison_with_the_moses_output(explain: Callable[..., tuple[int, list[str], str]], write: Write) -> None:
    """The first candidate, which has the highest total, is not the Moses output."""
    _, lines, _ = explain("--sentence", 7, "--moses-output", write("out", "x \n" * 7 + "a d \n"))
    assert lines[1] == "  moses      a d"
    assert "a c   (number 2" in lines[2] and "a d   (number 3" in lines[3]


def test_comparison_with_the_next_best_if_the_output_is_no_candidate(
    explain: Callable[..., tuple[int, list[str], str]], write: Write
) -> None:
    _, lines, _ = explain("--sentence", 7, "--moses-output", write("out", "x\n" * 7 + "a z\n"))
    assert lines[1] == "  moses      a z   (not among the candidates)"
    assert "a c   (number 2" in lines[2] and "a b   (number 1" in lines[3]


def test_a_moses_output_with_another_number_of_lines_is_an_error(
    explain: Callable[..., tuple[int, list[str], str]], write: Write
) -> None:
    output, source = write("out", "x\n" * 8), write("src", "s\n" * 9)
    _, _, err = explain("--sentence", 7, "--moses-output", output, "--source", source)
    assert f"{output} has 8 lines, {source} has 9" in err


def test_candidates_can_be_selected_by_rank(explain: Callable[..., tuple[int, list[str], str]]) -> None:
    _, lines, _ = explain("--sentence", 7, "--candidate", 3, "--against", 2)
    assert "a d   (number 3" in lines[1] and "a c   (number 2" in lines[2]
    assert "a d   (number 3" in explain("--sentence", 7, "--against", 3)[1][2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sentence", 3), "no sentence 3"),
        (("--sentence", 7, "--candidate", 4), "sentence 7 has 3 candidates, there is no candidate 4"),
    ],
)
def test_missing_sentences_and_candidates_are_errors(
    explain: Callable[..., tuple[int, list[str], str]], arguments: tuple[object, ...], message: str
) -> None:
    status, _, err = explain(*arguments)
    assert status == 2 and message in err
