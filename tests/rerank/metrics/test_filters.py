from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.errors import InputError
from rerank.metrics.filters import FILTERS, Filters

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

CASES = {
    "marks": [
        ("the house |0-1| is |2-2|", "the house is"),
        ("a |x-1| b", "a |x-1| b"),
        ("the |0-0,wa=0-0 ,total=0.49, LM0= -0.69| b |1-1|", "the b"),
    ],
    "factors": [("the|DT house|NN", "the house"), ("| a", "| a"), ("plain text", "plain text")],
    "debpe": [("a hou@@ se@@ s .", "a houses ."), ("cut@@", "cut"), ("a@@b c", "a@@b c")],
    "desentencepiece": [
        ("▁Das ▁Haus ▁ist ▁kl ein ▁.", "Das Haus ist klein ."),
        ("▁ Das ▁ kl ein", "Das klein"),
        ("Hel lo , ▁World !", "Hello, World!"),  # OpenNMT's spacers: the first word has none
        ("plain text", "plain text"),
        ("▁", ""),
    ],
    "dejoiner": [
        ("Hello ￭, world ￭!", "Hello, world!"),
        ("(￭ a ￭)", "(a)"),
        ("un￭ believ￭ able", "unbelievable"),
        ("a ￭ b", "ab"),
        ("a￭ ￭b", "ab"),
        ("￭ a  b ￭", "a b"),
        ("a￭b c", "a￭b c"),
        ("plain  text", "plain  text"),
    ],
    "deescape": [("&lt; &#124; &amp;lt; &apos;s", "< | &lt; 's")],
    "detruecase": [("the dog . is here", "The dog . Is here")],
    "detokenize": [("the dog , isn 't it ?", "the dog, isn't it?"), ("yes &amp; no", "yes &amp; no")],
    "detokenize:de": [("der Hund , ja !", "der Hund, ja!")],
    "debpe,detruecase,detokenize,deescape": [("the d@@ og &amp; cat .", "The dog & cat.")],
}


@pytest.mark.parametrize(("names", "text", "wanted"), [(n, *case) for n, cases in CASES.items() for case in cases])
def test_what_is_left(names: str, text: str, wanted: str) -> None:
    assert Filters(names)(text) == wanted


def test_every_filter_has_a_case() -> None:
    assert {name.partition(":")[0] for names in CASES for name in names.split(",")} == set(FILTERS)
    assert Filters("")("  as |0-0| it  is ") == "  as |0-0| it  is "


def test_what_is_no_filter() -> None:
    with pytest.raises(InputError, match="unknown filter 'debep'; did you mean 'debpe'"):
        Filters("marks,debep")
    with pytest.raises(InputError, match="debpe takes nothing behind a colon"):
        Filters("debpe:en")
    with pytest.raises(InputError, match="filter 'detokenize:klingon': expected the code of a language, such as de"):
        Filters("detokenize:klingon")


def test_tuning_and_evaluation_see_filtered_text(command: Command, write: Write) -> None:
    """Pieces and marks in the list, plain words in the reference: without filters nothing matches."""
    lines = ["0 ||| the ho@@ use |0-0| is r@@ ed . |1-3| ||| L= 0 ||| 0", "0 ||| a ho@@ use |0-0| ||| L= 1 ||| 0"]
    nbest, reference = write("list", "\n".join(lines) + "\n"), write("ref", "the house is red .\n")
    start = write("start", "[weight]\nL= 1\n")
    filtered = ("--filter", "marks,debpe")
    status, _, err = command("tune", nbest, "--reference", reference, "--start", start, "--tuner", "kbmira", *filtered)
    assert status == 0 and "-> 100.00" in err and "|filter:marks,debpe|" in err
    assert "segmentation marks" in command("tune", nbest, "--reference", reference, "--start", start)[2]
    out = write("out", "the ho@@ use |0-0| is r@@ ed . |1-3|\n")
    status, told, _ = command("evaluate", out, "--reference", reference, "--nbest", nbest, *filtered)
    assert status == 0 and b"100.00" in told and b"|filter:marks,debpe" in told
    assert b"1 of 1 lines are in the list, 1 first in it, place 1.0 in the mean" in told
