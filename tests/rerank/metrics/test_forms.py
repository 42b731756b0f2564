from collections.abc import Callable
from pathlib import Path

import pytest

from rerank.metrics.filters import FILTERS
from rerank.metrics.forms import FACTORS, SUBWORDS, Forms, advice

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

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
def test_a_form_is_found_and_its_filter_undoes_it(name: str) -> None:
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
def test_markers_that_are_words(lines: list[str]) -> None:
    assert found(lines) == []


def test_a_form_in_one_line_of_fifty_is_found() -> None:
    assert found([*["plain"] * 49, "kl@@ ein"]) == ["debpe"]


def test_advice_names_who_has_a_form() -> None:
    plain, bpe, factors = Forms(PLAIN), Forms(TEXTS["debpe"]), Forms(TEXTS["factors"])
    name, hint = "subwords that end in @@", "the filter 'debpe' joins them"
    assert advice({"a": bpe, "b": bpe, "c": plain}, plain) == [
        f"{name} in a, b, not in the reference: they will not match; {hint}"
    ]
    assert advice({"a": plain}, bpe) == [f"{name} in the reference, not in a: they will not match; {hint}"]
    assert advice({"a": bpe}, bpe) == [f"{name} in a and the reference: metrics count subwords, not words; {hint}"]
    assert advice({"a": plain}, plain) == advice({"a": factors}, factors) == []


@pytest.mark.parametrize("name", TEXTS)
def test_commands_name_the_filter(command: Command, write: Write, name: str) -> None:
    reference, start = write("ref", "\n".join(PLAIN) + "\n"), write("start", "[weight]\nA= 1\n")
    nbest = write("list", "".join(f"{n} ||| {line} ||| A= 1 ||| 0\n" for n, line in enumerate(TEXTS[name])))
    system = write("out", "\n".join(TEXTS[name]) + "\n")
    hint = f"not in the reference: they will not match; the filter '{name}' "
    tune = ("tune", nbest, "--reference", reference, "--start", start, "--tuner", "mean")
    evaluate = ("evaluate", system, "--reference", reference, "--nbest", nbest)
    out = command("validate", nbest, "--reference", reference)[1].decode()
    assert f" in the list, {hint}" in out and out.endswith("faults: 0, warnings: 1\n")
    status, _, err = command(*tune)
    assert status == 2 and f" in the list, {hint}" in err.rstrip("\n").split("\n")[-1]
    assert (
        f"warning: {next(f.name for f in (FACTORS, *SUBWORDS) if f.filter == name)} in {system}, {nbest}, {hint}"
        in (command(*evaluate)[2])
    )
    for arguments in (tune, evaluate):
        status, _, err = command(*arguments, "--filter", name)
        assert status == 0 and "will not match" not in err


def test_tuning_on_subwords_is_told_once(command: Command, write: Write) -> None:
    text = "".join(f"{line}\n" for line in TEXTS["debpe"])
    nbest = write("list", "".join(f"{n} ||| {line} ||| A= 1 ||| 0\n" for n, line in enumerate(TEXTS["debpe"])))
    start, output = write("start", "[weight]\nA= 1\n"), nbest.with_name("ini")
    arguments = ("--reference", write("ref", text), "--start", start, "--tuner", "mean", "--output", output)
    status, _, err = command("tune", nbest, *arguments)
    assert status == 0
    assert err.count("subwords that end in @@ in the list and the reference: metrics count subwords, not words") == 1
