from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from moses_io.filters import FACTORS, FILTERS, SUBWORDS, Filters, Forms, advice

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

CASES = {
    "marks": [
        ("the house |0-1| is |2-2|", "the house is"),
        ("a |x-1| b", "a |x-1| b"),
        ("a |0-1|b |0-0|, c", "a |0-1|b |0-0|, c"),
        ("the |0-0,wa=0-0 ,total=0.49, LM0= -0.69| b |1-1|", "the b"),
    ],
    "factors": [("the|DT house|NN", "the house"), ("| a", "| a"), ("plain text", "plain text")],
    "debpe": [("a hou@@ se@@ s .", "a houses ."), ("cut@@", "cut"), ("a@@b c", "a@@b c")],
    "desentencepiece": [
        ("▁Das ▁Haus ▁ist ▁kl ein ▁.", "Das Haus ist klein ."),
        ("▁ Das ▁ kl ein", "Das klein"),
        ("Hel lo , ▁World !", "Hello, World!"),  # OpenNMT spacers: the first word has no marker
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
def test_each_filter_changes_text_as_expected(names: str, text: str, wanted: str) -> None:
    assert Filters(names)(text) == wanted


def test_every_filter_has_a_case() -> None:
    assert {name.partition(":")[0] for names in CASES for name in names.split(",")} == set(FILTERS)
    assert Filters("")("  as |0-0| it  is ") == "  as |0-0| it  is "


def test_wrong_filters_are_errors() -> None:
    with pytest.raises(InputError, match=r"unknown filter 'debep'. Did you mean 'debpe'"):
        Filters("marks,debep")
    with pytest.raises(InputError, match="debpe takes no argument"):
        Filters("debpe:en")
    with pytest.raises(InputError, match="filter 'detokenize:klingon': expected the code of a language, such as de"):
        Filters("detokenize:klingon")


def test_tuning_and_evaluation_use_filtered_text(command: Command, write: Write) -> None:
    """The list has subwords and segmentation marks, the reference has words. Without filters, nothing matches."""
    lines = ["0 ||| the ho@@ use |0-0| is r@@ ed . |1-3| ||| L= 0 ||| 0", "0 ||| a ho@@ use |0-0| ||| L= 1 ||| 0"]
    nbest, reference = write("list", "\n".join(lines) + "\n"), write("ref", "the house is red .\n")
    initial = write("initial", "[weight]\nL= 1\n")
    filtered = ("--filter", "marks,debpe")
    status, _, err = command(
        "tune", nbest, "--reference", reference, "--initial-weights", initial, "--tuner", "kbmira", *filtered
    )
    assert status == 0 and "-> 100.00" in err and "|filter:marks,debpe|" in err
    assert "segmentation marks" in command("tune", nbest, "--reference", reference, "--initial-weights", initial)[2]
    out = write("out", "the ho@@ use |0-0| is r@@ ed . |1-3|\n")
    status, table, _ = command("evaluate", out, "--reference", reference, "--nbest", nbest, *filtered)
    assert status == 0 and b"100.00" in table and b"|filter:marks,debpe" in table
    assert b"1 of 1 translations are in the list, 1 with rank 1, mean rank 1.0" in table


PLAIN = ["Das Haus ist klein .", "Wir sehen die Katze ."]
TEXTS = {
    "factors": ["Das|ART Haus|NN ist|V klein|ADJ .|$.", "Wir|P sehen|V die|ART Katze|NN .|$."],
    "debpe": ["Das Haus ist kl@@ ein .", "Wir sehen die K@@ atze ."],
    "desentencepiece": ["▁Das ▁Haus ▁ist ▁kl ein ▁.", "▁Wir ▁sehen ▁die ▁K atze ▁."],
    "dejoiner": ["Das Haus ist kl￭ ein .", "Wir sehen die K ￭atze ."],
}
LONG = ["plain"] * 200


def found(lines: list[str]) -> list[str]:
    counted = Forms(lines)
    return [form.filter for form in (FACTORS, *SUBWORDS) if form in counted]


@pytest.mark.parametrize("name", TEXTS)
def test_subwords_and_factors_are_detected_and_removed(name: str) -> None:
    undo = FILTERS[name][0]("")
    assert found(TEXTS[name]) == [name]
    assert [undo(line) for line in TEXTS[name]] == PLAIN


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["a | b", "|", "a | b | c", "x|y is one of six tokens"],
        ["@@ -1 +1 @@", "a@@b"],
        ["a▁b", "a￭b"],
        [*LONG, "kl@@ ein"],
        [*LONG, "▁ and ￭"],
        ["yes|no", "plain", "plain"],
    ],
)
def test_marker_characters_in_words_are_not_detected(lines: list[str]) -> None:
    assert found(lines) == []


def test_subwords_in_one_of_fifty_lines_are_detected() -> None:
    assert found([*["plain"] * 49, "kl@@ ein"]) == ["debpe"]


def test_advice_names_the_files_with_subwords() -> None:
    plain, bpe, factors = Forms(PLAIN), Forms(TEXTS["debpe"]), Forms(TEXTS["factors"])
    name, hint = "subwords that end in @@", "The filter 'debpe' joins them"
    assert advice({"a": bpe, "b": bpe, "c": plain}, plain) == [
        f"{name} in a, b, not in the reference: they will not match. {hint}"
    ]
    assert advice({"a": plain}, bpe) == [f"{name} in the reference, not in a: they will not match. {hint}"]
    assert advice({"a": bpe}, bpe) == [f"{name} in a and the reference: metrics count subwords, not words. {hint}"]
    assert advice({"a": plain}, plain) == advice({"a": factors}, factors) == []


@pytest.mark.parametrize("name", TEXTS)
def test_commands_recommend_the_filter(command: Command, write: Write, name: str) -> None:
    reference, initial = write("ref", "\n".join(PLAIN) + "\n"), write("initial", "[weight]\nA= 1\n")
    nbest = write("list", "".join(f"{n} ||| {line} ||| A= 1 ||| 0\n" for n, line in enumerate(TEXTS[name])))
    system = write("out", "\n".join(TEXTS[name]) + "\n")
    hint = f"not in the reference: they will not match. The filter '{name}' "
    tune = ("tune", nbest, "--reference", reference, "--initial-weights", initial, "--tuner", "mean")
    evaluate = ("evaluate", system, "--reference", reference, "--nbest", nbest)
    out = command("validate", nbest, "--reference", reference)[1].decode()
    assert f" in the list, {hint}" in out and out.endswith("errors: 0, warnings: 1\n")
    status, _, err = command(*tune)
    assert status == 2 and f" in the list, {hint}" in err.rstrip("\n").split("\n")[-1]
    assert (
        f"warning: {next(f.name for f in (FACTORS, *SUBWORDS) if f.filter == name)} in {system}, {nbest}, {hint}"
        in (command(*evaluate)[2])
    )
    for arguments in (tune, evaluate):
        status, _, err = command(*arguments, "--filter", name)
        assert status == 0 and "will not match" not in err


def test_tuning_on_subwords_is_one_warning(command: Command, write: Write) -> None:
    text = "".join(f"{line}\n" for line in TEXTS["debpe"])
    nbest = write("list", "".join(f"{n} ||| {line} ||| A= 1 ||| 0\n" for n, line in enumerate(TEXTS["debpe"])))
    initial, output = write("initial", "[weight]\nA= 1\n"), nbest.with_name("ini")
    arguments = ("--reference", write("ref", text), "--initial-weights", initial, "--tuner", "mean", "--output", output)
    status, _, err = command("tune", nbest, *arguments)
    assert status == 0
    assert err.count("subwords that end in @@ in the list and the reference: metrics count subwords, not words") == 1
