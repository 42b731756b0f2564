from collections.abc import Callable
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from moses_io.files.errors import InputError
from moses_io.files.text import read_lines
from moses_io.filters import Filters
from moses_io.nbest import read_nbest
from rerank.metrics.evaluation import REPORTED, evaluate
from rerank.report.listed import evaluate_files, find_in_list
from rerank.report.tables import table


@pytest.fixture(scope="module")
def moses(sample: Path) -> list[str]:
    return [sentence_list.hypotheses[0].text for sentence_list in read_nbest(str(sample / "test.nbest.gz"))]


def test_scores_equal_those_of_the_moses_scripts(sample: Path, moses: list[str]) -> None:
    """multi-bleu.perl gives 82.84 for the Moses output and 95.20 for the oracle by smoothed sentence BLEU."""
    reference = read_lines(str(sample / "test.en"))
    facts = find_in_list(str(sample / "test.nbest.gz"), [reference], {"moses": moses, "x": ["x"] * 400}, Filters(""))
    evaluation = evaluate({"moses": moses, "best": facts.oracle}, [reference], facts=facts)
    assert f"{evaluation.scores['moses']['BLEU'].value:.2f}" == "82.84"
    assert f"{evaluation.scores['best']['BLEU'].value:.2f}" == "95.20"
    assert evaluation.oracle is not None
    assert evaluation.oracle["BLEU"].value == evaluation.scores["best"]["BLEU"].value
    assert evaluation.scores["moses"]["BLEU"].p_value is None
    assert evaluation.scores["best"]["BLEU"].p_value == pytest.approx(1e-4, abs=1e-6)
    assert (
        "|ar:10000|seed:12345|" in evaluation.signatures["BLEU"] and "|ties:counted|" in evaluation.signatures["BLEU"]
    )
    lines = table(evaluation)
    assert lines[0].split() == ["system", "BLEU", "p", "chrF", "p", "TER", "p"]
    assert lines[1].startswith("moses") and "82.84" in lines[1]
    assert lines[3].startswith("oracle") and "95.20" in lines[3]
    assert {"systems", "signatures", "version", "oracle", "ranks"} == set(evaluation.as_json())
    assert lines[-2] == "moses: 400 of 400 translations are in the list, 400 with rank 1, mean rank 1.0, median rank 1"
    assert lines[-1] == "x: 0 of 400 translations are in the list, 0 with rank 1"


def test_p_values_of_one_and_of_six_different_sentences(moses: list[str], sample: Path) -> None:
    """One different sentence is never significant. For six worse sentences, 2 of 64 swaps are as extreme."""
    reference = read_lines(str(sample / "test.en"))[:50]
    lines = moses[:50]
    systems = {"moses": lines, "again": list(lines), "one": ["x", *lines[1:]], "six": ["x"] * 6 + lines[6:]}
    scores = evaluate(systems, [reference]).scores
    for metric in REPORTED:
        p_values = [scores[name][metric].p_value for name in systems]
        assert p_values == [None, 1, 1, 2 / 64]


def test_equal_scores_of_different_outputs_are_not_significant() -> None:
    """Each system has the same error in another sentence."""
    references = [["a b c d e f", "a b c d e f", "a b c d e f"]]
    systems = {"x": ["a b c d e z", *references[0][1:]], "y": [*references[0][:2], "a b c d e z"]}
    scores = evaluate(systems, references).scores
    for metric in REPORTED:
        assert scores["x"][metric].value == scores["y"][metric].value
        assert scores["y"][metric].p_value == 1
    assert "ar:" not in evaluate({"x": systems["x"]}, references).signatures["BLEU"]


def test_a_system_with_another_number_of_lines_is_an_error(sample: Path) -> None:
    with pytest.raises(InputError, match="x has 1 line, the reference has 400"):
        find_in_list(str(sample / "test.nbest.gz"), [read_lines(str(sample / "test.en"))], {"x": ["x"]}, Filters(""))


def test_a_line_that_is_too_long_for_ter_is_an_error() -> None:
    with pytest.raises(InputError, match="system:2: more than 10,000 tokens, too many for TER"):
        evaluate({"system": ["a", "a " * 10_001]}, [["a", "a"]])


def test_spaces_do_not_hide_a_line_that_is_too_long_for_ter() -> None:
    with pytest.raises(InputError, match="system:2: more than 10,000 tokens"):
        evaluate({"system": [" " * 20_000 + "a", "a " * 10_001]}, [["a", "a"]])


def test_whitespace_other_than_the_space_does_not_split_tokens() -> None:
    joined = ["a\u00a0b c\u2028d e f g"]
    apart = ["a b c d e f g"]
    assert evaluate({"x": joined}, [joined]).scores["x"]["BLEU"].value == pytest.approx(100)
    assert evaluate({"x": joined}, [apart]).scores["x"]["BLEU"].value < 50
    assert evaluate({"x": joined}, [apart], tokenize="13a").scores["x"]["BLEU"].value == pytest.approx(100)

    other = ["a\u2009b c\u2028d e f g"]
    assert evaluate({"x": joined}, [other]).scores["x"]["BLEU"].value < 90


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u2028"])
def test_the_signature_shows_differences_from_sacrebleu(blank: str, moses: list[str], sample: Path) -> None:
    """On ordinary text, all scores equal those of sacreBLEU. With other whitespace characters only BLEU differs."""
    reference = [line.replace(" the ", f"{blank}the ") for line in read_lines(str(sample / "test.en"))[:50]]
    evaluation = evaluate({"x": moses[:50]}, [reference])
    scorers: list[BLEU | CHRF | TER] = [BLEU(tokenize="none", force=True), CHRF(), TER()]
    for metric, scorer in zip(REPORTED, scorers, strict=True):
        same = metric != "BLEU" or blank == " "
        theirs = scorer.corpus_score(moses[:50], [reference]).score
        assert (evaluation.scores["x"][metric].value == pytest.approx(theirs, abs=1e-9)) is same
        assert (evaluation.signatures[metric] == str(scorer.get_signature())) is (metric != "BLEU")
    assert "|tok:space|" in evaluation.signatures["BLEU"]
    assert "|tok:13a|" in evaluate({"x": moses[:50]}, [reference], tokenize="13a").signatures["BLEU"]


def test_several_references() -> None:
    both = evaluate({"x": ["a b c d e"]}, [["a b c d e"], ["z"]])
    assert both.scores["x"]["BLEU"].value == pytest.approx(100)
    assert "nrefs:2" in both.signatures["BLEU"]


def test_missing_references_are_ignored() -> None:
    """Expected scores: sacreBLEU's command line with repeated first references, and its Python API with None."""
    references = [
        ["this is a long ref", "the cat sat on the mat ."],
        ["this is another long ref", "the cat is sitting on the mat now ."],
        ["", "a cat sat on a mat today ."],
    ]
    evaluation = evaluate({"x": ["I do", "the cat sat on the mat today ."]}, references)
    assert [f"{evaluation.scores['x'][metric].value:.2f}" for metric in ("BLEU", "TER")] == ["56.98", "46.15"]
    assert "nrefs:var" in evaluation.signatures["BLEU"]


def test_a_missing_reference_equals_a_copy_of_the_other_one(
    moses: list[str], sample: Path, write: Callable[[str, str], Path]
) -> None:
    """Scores, p-values and oracle do not change if a missing second reference is replaced by the first one."""
    reference = read_lines(str(sample / "test.en"))
    second = [line.replace("the ", "a ") for line in reference]
    shortened = str(write("x", "".join(f"{line.partition(' ')[2]}\n" for line in moses)))
    systems = {"moses": str(write("moses", "".join(f"{line}\n" for line in moses))), "x": shortened}
    evaluations = []
    for name, every_third in (("blank", ["", " "] * 200), ("copy", reference)):
        lines = [every_third[index] if index % 3 == 0 else line for index, line in enumerate(second)]
        other = str(write(name, "".join(f"{line}\n" for line in lines)))
        nbest, references = str(sample / "test.nbest.gz"), [str(sample / "test.en"), other]
        evaluations.append(evaluate_files(systems, references, nbest, Filters("")))
    blank, copy = evaluations
    assert blank.scores == copy.scores
    assert (blank.oracle, blank.facts) == (copy.oracle, copy.facts)


def test_outputs_that_cannot_be_compared_are_errors() -> None:
    with pytest.raises(InputError, match="x has 2 lines, the reference has 1"):
        evaluate({"x": ["a", "b"]}, [["a"]])
    with pytest.raises(InputError, match="x:2: segmentation marks"):
        evaluate({"x": ["a", "b |0-1|"]}, [["a", "b"]])
    with pytest.raises(InputError, match="tokenize 'klingon': expected one of"):
        evaluate({"x": ["a"]}, [["a"]], tokenize="klingon")


def test_without_references_only_ranks_are_reported(
    sample: Path, moses: list[str], write: Callable[[str, str], Path]
) -> None:
    systems, nbest = {"moses": moses, "x": ["x"] * 400}, str(sample / "test.nbest.gz")
    paths = {name: str(write(name, "".join(f"{line}\n" for line in lines))) for name, lines in systems.items()}
    evaluation = evaluate_files(paths, [], nbest, Filters(""))
    facts = find_in_list(nbest, [read_lines(str(sample / "test.en"))], systems, Filters(""))
    assert evaluation.facts is not None and evaluation.facts.oracle == []
    assert evaluation.facts.ranks == facts.ranks
    assert table(evaluation) == facts.lines()
    plain = evaluation.as_json()
    assert (plain["systems"], plain["signatures"]) == ([{"system": "moses"}, {"system": "x"}], {})
    assert "oracle" not in plain


def test_an_empty_reference_is_an_error(sample: Path, write: Callable[[str, str], Path]) -> None:
    empty, system = str(write("empty", "")), str(write("system", "a\n"))
    for nbest in (None, str(sample / "test.nbest.gz")):
        with pytest.raises(InputError, match="the reference is empty"):
            evaluate_files({"x": system}, [empty], nbest, Filters(""))
