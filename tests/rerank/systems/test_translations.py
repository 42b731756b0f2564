"""`moses-rerank translate`, with text or an n-best list as output."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from features.feature import Resources, Sentence
from features.models.decoding.translator import Translation
from moses_io.files.errors import InputError
from moses_io.hypothesis import parse_line
from moses_io.nbest import read_nbest
from rerank.systems.translations import CandidateMerger, check_names, indicators, list_name, listable

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def source(sample: Path, write: Write) -> Path:
    lines = (sample / "test.de").read_bytes().splitlines(keepends=True)
    return write("source", b"".join([*lines[:12], b"\n"]))


def test_scores_of_a_list_equal_those_of_score(
    models: dict[str, Path], source: Path, tmp_path: Path, command: Command
) -> None:
    made, scored, text = (str(tmp_path / name) for name in ("made.gz", "scored", "text"))
    translate = ("translate", models["forward"], "--source", source, "--beam", 6, "--output")
    status, _, err = command(*translate, made, "--nbest", 4)
    assert status == 0 and "NMT = preset:cohn-align|" in err and "|beam:6|normalize:yes|unknown:copy|version:" in err
    feature = f"Same=neural:{models['forward']}"
    assert command("score", made, "--source", source, "--feature", feature, "--output", scored)[0] == 0
    assert command(*translate, text)[0] == 0
    lists, lines = list(read_nbest(scored)), Path(text).read_text().split("\n")[:-1]
    assert [each.sentence for each in lists] == list(range(13)) and len(lines) == 13
    for each, line in zip(lists, lines, strict=True):
        values = [[values[0] for _, values in hypothesis.dense] for hypothesis in each.hypotheses]
        assert [name for name, _ in each.hypotheses[0].dense] == ["NMT", "Same"]
        np.testing.assert_allclose(*np.array(values).T, atol=1e-4)
        assert each.highest_total == 0 and each.hypotheses[0].text == line
        assert len({hypothesis.text for hypothesis in each.hypotheses}) == len(each.hypotheses) <= 4
    assert lists[-1].hypotheses[0].text == "" and len(lists[0].hypotheses) > 1


def test_the_beam_is_at_least_as_large_as_the_list(models: dict[str, Path], write: Write, command: Command) -> None:
    words = ("translate", models["forward"], "--source", write("source", "die Zeitung .\n"), "--nbest")
    _, _, err = command(*words, 2)
    assert "|beam:12|" in err
    status, out, err = command(*words, 20)
    assert status == 0 and "|beam:20|" in err and out.count(b"\n") > 12


def test_a_tab_separates_words(models: dict[str, Path], write: Write, command: Command) -> None:
    sources = [write(f"source{number}", text) for number, text in enumerate(("die Zeitung .\n", "die\tZeitung .\n"))]
    one, other = (command("translate", models["forward"], "--source", path, "--nbest", 3)[:2] for path in sources)
    assert one == other and one[0] == 0


def test_markup_in_a_source_is_an_error(models: dict[str, Path], write: Write, command: Command) -> None:
    source = write("source", "die Zeitung .\ndie <wall/> Zeitung .\n")
    status, out, err = command("translate", models["forward"], "--source", source)
    assert (status, out) == (2, b"") and f"{source}:2: '<wall/>' is markup for Moses' -xml-input" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nbest", "13", "--beam", "12"], "--nbest 13: expected at most the 12 of --beam"),
        (["--label", "X"], "--label names the feature of a list: it needs --nbest"),
        (["--nbest", "2", "--label", "a_b"], "label 'a_b': expected a letter, then letters and digits, at most 100"),
        (["--unknown", ""], "unknown words: expected copy, keep or a file"),
        (["--unknown", "nowhere"], "nowhere: No such file or directory"),
    ],
)
def test_wrong_arguments_are_errors(
    arguments: list[str], message: str, models: dict[str, Path], write: Write, tmp_path: Path, command: Command
) -> None:
    output, source = tmp_path / "out", write("source", "a\n")
    status, _, err = command("translate", models["forward"], "--source", source, "--output", output, *arguments)
    assert status == 2 and message in err.splitlines()[-1] and not output.exists()


def test_translations_with_the_field_separator_are_omitted() -> None:
    translations = [Translation(("a", token), -1.0, -1.0) for token in ("b", "x|||", "|", "|||")]
    assert listable(translations) == [translations[0], translations[2]]


def test_a_model_without_translations_has_the_indicator_0() -> None:
    """A source token that was copied may contain the field separator, so a model may have no usable translation."""
    line = parse_line(b"0 ||| a ||| LM= -1 ||| -2", 1)
    sentence = Sentence(0, ("a|||b",), (("a",),), (line,), "list")
    translations = {"one": [[Translation(("a|||b",), -1.0, -1.0)]], "two": [[Translation(("c",), -1.0, -1.0)]]}
    (merged,) = CandidateMerger([], Resources()).merge([sentence], translations)
    assert [dict(each.dense)["Fromone"] for each in merged.lines] == [(0.0,), (0.0,)]
    assert [dict(each.dense)["Fromtwo"] for each in merged.lines] == [(0.0,), (1.0,)]


def test_translations_much_shorter_than_the_list_are_left_out() -> None:
    """The shortest candidate of the decoder has five words, so a translation needs four."""
    lines = tuple(parse_line(f"0 ||| {text} ||| LM= -1 ||| -2".encode(), 1) for text in ("a b c d e f", "a b c d e"))
    hypotheses = tuple(tuple(line.text.split()) for line in lines)
    sentence = Sentence(0, ("x",), hypotheses, lines, "list")
    translations = {"one": [[Translation(tuple(text), -1.0, -1.0) for text in ("uvw", "uvwx", "uvwxyzuvwxyz")]]}
    (merged,) = CandidateMerger([], Resources()).merge([sentence], translations)
    assert merged.hypotheses == (*hypotheses, tuple("uvwx"), tuple("uvwxyzuvwxyz"))


def test_an_empty_source_is_an_error(models: dict[str, Path], write: Write, command: Command) -> None:
    status, out, err = command("translate", models["forward"], "--source", write("source", ""))
    assert (status, out) == (2, b"") and "source: the file is empty. Expected one sentence per line" in err


def test_list_names_have_only_letters_and_digits() -> None:
    assert list_name("many-cohn_align.1") == "manycohnalign1"
    assert indicators(["a", "b"]) == ["FromMoses", "Froma", "Fromb"] and indicators([]) == []


@pytest.mark.parametrize(
    ("models", "features", "message"),
    [
        (["a-b", "ab"], {}, "models.ab: another list is also called ab. Choose another name"),
        (["Moses"], {}, "models.Moses: the decoder's list is also called Moses. Ch"),
        (
            ["a"],
            {"Froma": "length"},
            "features.Froma: reserved for the feature that marks the origin of candidates. Choose another label",
        ),
        (["a"], {"Rest": "rest:moses.ini"}, "features.Rest: rest is for the decoder's own candidates. Remove `cand"),
        (["a"], {"P": "phrases"}, "features.P: phrases is for the decoder's own candidates. Remove `candidates`"),
    ],
)
def test_names_and_features_that_clash_with_added_lists_are_errors(
    models: list[str], features: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check_names({f"models.{name}": name for name in models}, features)
    check_names({"models.first": models[0]} if len(models) > 1 else {}, features)
