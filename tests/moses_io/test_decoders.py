"""Lists of other decoders. Each example follows the code that prints it, as named in `PRINTED_BY`."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moses_io.decoders.convert import Converted, convert
from moses_io.decoders.formats import FORMATS, format_of
from moses_io.files.errors import InputError
from moses_io.nbest import read_nbest
from moses_io.weights import read_weights

Write = Callable[[str, "str | bytes"], Path]

PRINTED_BY = {
    "marian": "marian-nmt/marian-dev src/translator/output_printer.h print()",
    "joshua": "apache/joshua decoder/hypergraph/KBestExtractor.java getKthHyp(), ff/FeatureVector.java toString()",
    "cdec": "redpony/cdec decoder/oracle_bleu.h DumpKBest(), utils/sparse_vector.h operator<<",
    "travatar": "neubig/travatar src/lib/travatar-runner.cc TravatarRunnerTask::Run()",
    "fairseq": "fairseq 0.12.2 fairseq_cli/generate.py lines 255-344",
    "sockeye": "sockeye 3.1.34 sockeye/inference.py lines 509-542, output_handler.py lines 228-229",
    "opennmt-py": "OpenNMT-py 3.5.1 onmt/translate/translator.py lines 402-452",
    "opennmt-tf": "OpenNMT-tf 2.32.0 opennmt/utils/misc.py lines 177-211",
    "ctranslate2": "OpenNMT/CTranslate2 include/ctranslate2/translator.h translate_raw_text_file()",
    "ctranslate2-json": "OpenNMT/CTranslate2 python TranslationResult(hypotheses, scores, attention)",
}

EXAMPLES = {
    "marian": """\
0 ||| das ist gut . ||| F0= -1.38269 F1= -2.03168 ||| -0.430195
0 ||| das ist fein . ||| F0= -2.09314 F1= -2.03100 ||| -0.824964
2 |||  ||| F0= -0.1 F1= -0.2 ||| -0.3
""",
    "joshua": """\
0 ||| this is good ||| tm_pt_0=-1.234 lm_0=-12.346 OOVPenalty=0.000 ||| -8.765
0 ||| this is nice ||| tm_pt_0=-1.500 lm_0=-13.000 OOVPenalty=1.000 ||| -9.100
7 ||| das ist gut |||  ||| 0.000
""",
    "cdec": """\
0 ||| this is good ||| Glue=2 LanguageModel=-12.3457 PhraseModel_0=1.20412 WordPenalty=-1.30288 ||| -8.76543
0 ||| this is nice ||| Glue=2 LanguageModel=-13.1 PassThrough=1 WordPenalty=-1.30288 ||| -9.1
""",
    "travatar": """\
0 ||| this is good |COL| DT VBZ JJ ||| -8.76543 ||| lm=-12.3457 w=4 p=3 egfp=-1.2
0 ||| this is nice |COL| DT VBZ JJ ||| -9.1 ||| lm=-13 w=4
""",
    "fairseq": """\
2023-01-02 | INFO | fairseq_cli.generate | loading model
S-29\tdas ist gut
T-29\tthis is good
H-29\t-0.4261859655380249\tthis is good
D-29\t-0.4261859655380249\tthis is good
P-29\t-0.6012 -0.2210 -0.3333 -0.5492
H-29\t-0.5\tthis is
P-29\t-0.5 -0.5 -0.5
S-4\tdas
H-4\t-0.25\tthat
P-4\t-0.1 -0.4
Generate valid with beam=5: BLEU4 = 30.1
""",
    "sockeye": """\
{"score": 0.41, "scores": [[0.41], [0.77]], "sentence_id": 1, "translation": "a b", "translations": ["a b", "a c"]}
{"score": -Infinity, "sentence_id": 2, "translation": ""}
{"score": 0.5, "sentence_id": 3, "translation": "d"}
""",
    "opennmt-py": "das ist gut ||| 0-0 1-1 2-2\t-0.4123\ndas ||| 0-0\t-1e-05\n ||| \t-0.7\nein ||| 0-0\t-3\n",
    "opennmt-tf": """\
-1.123214 ||| Hello world ||| 0-0 1-1
-1.200000 ||| Hello ||| 0-0
-0.100000 ||| a ||| 0-0
-0.200000 ||| b ||| 0-0
""",
    "ctranslate2": "-0.412345 ||| ▁das ▁ist ▁gut\n-0.778123 ||| ▁das ▁ist ▁fein\n-1 ||| ein\n-2 |||\n",
    "ctranslate2-json": """\
{"hypotheses": [["das", "ist"], ["das"]], "scores": [-0.5, -0.7]}
{"hypotheses": ["ein text"], "scores": [-1]}
""",
}

EXPECTED = {
    "marian": """\
0 ||| das ist gut . ||| Score= -0.430195 F0= -1.38269 F1= -2.03168 ||| -0.430195
0 ||| das ist fein . ||| Score= -0.824964 F0= -2.09314 F1= -2.03100 ||| -0.824964
2 |||  ||| Score= -0.3 F0= -0.1 F1= -0.2 ||| -0.3
""",
    "joshua": """\
0 ||| this is good ||| Score= -8.765 tmpt0= -1.234 lm0= -12.346 OOVPenalty= 0.000 ||| -8.765
0 ||| this is nice ||| Score= -9.100 tmpt0= -1.500 lm0= -13.000 OOVPenalty= 1.000 ||| -9.100
7 ||| das ist gut ||| Score= 0.000 tmpt0= 0 lm0= 0 OOVPenalty= 0 ||| 0.000
""",
    "cdec": """\
0 ||| this is good ||| Score= -8.76543 Glue= 2 LanguageModel= -12.3457 PhraseModel0= 1.20412 WordPenalty= -1.30288 \
PassThrough= 0 ||| -8.76543
0 ||| this is nice ||| Score= -9.1 Glue= 2 LanguageModel= -13.1 PhraseModel0= 0 WordPenalty= -1.30288 PassThrough= 1 \
||| -9.1
""",
    "travatar": """\
0 ||| this is good ||| Score= -8.76543 lm= -12.3457 w= 4 p= 3 egfp= -1.2 ||| -8.76543
0 ||| this is nice ||| Score= -9.1 lm= -13 w= 4 p= 0 egfp= 0 ||| -9.1
""",
    # Base 2: -0.25 · ln 2 and (-0.1 - 0.4) · ln 2.
    "fairseq": """\
4 ||| that ||| Score= -0.1732867951 LogProb= -0.3465735903 ||| -0.1732867951
29 ||| this is good ||| Score= -0.2954096004 LogProb= -1.181607999 ||| -0.2954096004
29 ||| this is ||| Score= -0.3465735903 LogProb= -1.039720771 ||| -0.3465735903
""",
    "sockeye": """\
0 ||| a b ||| Score= -0.41 ||| -0.41
0 ||| a c ||| Score= -0.77 ||| -0.77
1 |||  ||| Score= 0.0 ||| 0.0
2 ||| d ||| Score= -0.5 ||| -0.5
""",
    "opennmt-py": """\
0 ||| das ist gut ||| Score= -0.4123 ||| -0.4123
0 ||| das ||| Score= -1e-05 ||| -1e-05
1 |||  ||| Score= -0.7 ||| -0.7
1 ||| ein ||| Score= -3 ||| -3
""",
    "opennmt-tf": """\
0 ||| Hello world ||| Score= -1.123214 ||| -1.123214
0 ||| Hello ||| Score= -1.200000 ||| -1.200000
1 ||| a ||| Score= -0.100000 ||| -0.100000
1 ||| b ||| Score= -0.200000 ||| -0.200000
""",
    "ctranslate2": """\
0 ||| ▁das ▁ist ▁gut ||| Score= -0.412345 ||| -0.412345
0 ||| ▁das ▁ist ▁fein ||| Score= -0.778123 ||| -0.778123
1 ||| ein ||| Score= -1 ||| -1
1 |||  ||| Score= -2 ||| -2
""",
    "ctranslate2-json": """\
0 ||| das ist ||| Score= -0.5 ||| -0.5
0 ||| das ||| Score= -0.7 ||| -0.7
1 ||| ein text ||| Score= -1.0 ||| -1.0
""",
}


def converted(write: Write, text: str, form: str = "", source: str = "eins zwei\ndrei\n") -> tuple[Converted, str]:
    """Convert a list. Return the summary and the converted list."""
    path, output = write("list", text), write("output", "")
    done = convert(str(path), str(output), form, str(write("source", source)))
    assert sum(1 for _ in read_nbest(str(output))) == done.sentences
    return done, output.read_text()


@pytest.mark.parametrize("form", FORMATS)
def test_a_list_of_each_decoder(write: Write, form: str) -> None:
    assert form in PRINTED_BY
    done, found = converted(write, EXAMPLES[form], form)
    assert found == EXPECTED[form]
    assert done.labels[0] == "Score"


@pytest.mark.parametrize("form", FORMATS)
def test_the_format_is_recognized(form: str) -> None:
    same = {"joshua": "cdec", "opennmt-tf": "ctranslate2"}
    lines = [line for line in EXAMPLES[form].splitlines() if line.strip()]
    assert format_of(lines) == same.get(form, form)


@pytest.mark.parametrize(
    "text",
    [
        "0 ||| a b ||| LM0= -1 TM0= -1 -2 ||| -3",
        "0 ||| a b ||| d: -1 lm: -2 ||| -3",
        "0 ||| a b ||| -1 -2 -3 ||| -3",
        "a b c",
        "a\tb",
        "{a}",
        "[1, 2]",
        "-0.5",
        "",
    ],
)
def test_other_files_are_not_recognized(text: str) -> None:
    assert format_of([text] if text else []) == ""


def test_convert_writes_initial_weights_of_1_for_the_score_and_0_for_others(write: Write) -> None:
    path = write("list", EXAMPLES["marian"])
    convert(str(path), str(path.with_name("output")), weights=str(path.with_name("weights.ini")))
    assert path.with_name("weights.ini").read_text() == "# initial weights\n\n[weight]\nScore= 1\nF0= 0\nF1= 0\n"
    weights = read_weights(str(path.with_name("weights.ini")))
    assert weights == {"Score": (1.0,), "F0": (0.0,), "F1": (0.0,)}


def test_marian_with_alignment_and_word_scores(write: Write) -> None:
    text = "0 ||| a b ||| 0-0 1-1 ||| WordScores= -0.50000 -0.25000 ||| F0= -0.75 ||| -0.375\n"
    assert converted(write, text)[1] == "0 ||| a b ||| Score= -0.375 F0= -0.75 ||| -0.375\n"
    soft = "0 ||| a b ||| 0.9,0.05,0.05 0.1,0.8,0.1 ||| F0= -0.75 ||| -0.375\n"
    assert converted(write, soft)[1] == "0 ||| a b ||| Score= -0.375 F0= -0.75 ||| -0.375\n"


def test_a_feature_that_equals_the_score_is_omitted(write: Write) -> None:
    text = "0 ||| a ||| F0= -1.5 ||| -1.5\n0 ||| b ||| F0= -2 ||| -2\n"
    done, found = converted(write, text)
    assert found == "0 ||| a ||| Score= -1.5 ||| -1.5\n0 ||| b ||| Score= -2 ||| -2\n"
    assert done.left_out == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 ||| a ||| lm_0=1 lm0=2 ||| -1\n", "'lm0' and 'lm_0' would have the same label lm0. Rename one of them"),
        ("0 ||| a ||| Score=4 ||| -1\n", "the decoder's own score\" would have the same label Score"),
    ],
)
def test_two_features_with_the_same_label_are_an_error(write: Write, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        converted(write, text)
    assert message in str(error.value)


def test_labels_with_a_prefix(write: Write) -> None:
    """Lists of two decoders can be merged if their labels differ."""
    path = write("list", "0 ||| a ||| F0= -1 F1= -2 ||| -3\n")
    convert(str(path), str(path.with_name("output")), label="Marian", weights=str(path.with_name("weights")))
    expected = "0 ||| a ||| Marian= -3 MarianF0= -1 MarianF1= -2 ||| -3\n"
    assert path.with_name("output").read_text() == expected
    assert path.with_name("weights").read_text().endswith("[weight]\nMarian= 1\nMarianF0= 0\nMarianF1= 0\n")


def test_filters_join_subwords(write: Write) -> None:
    path = write("list", "H-0\t-1\tein klei@@ nes Haus\n")
    convert(str(path), str(path.with_name("output")), filters="debpe")
    assert path.with_name("output").read_text().startswith("0 ||| ein kleines Haus ||| ")


def test_a_separator_made_by_a_filter_is_an_error(write: Write) -> None:
    path = write("list", "H-0\t-1\ta &#124;&#124;&#124; b\n")
    with pytest.raises(InputError, match=r"list: sentence 0: the filter deescape makes '\|\|\|', which Moses' format"):
        convert(str(path), str(path.with_name("output")), filters="deescape")
    assert not path.with_name("output").exists()


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("H-0\t-1\ta\nP-0\t-1\nH-0\t-1\tb\n", "fairseq"),
        ("0 ||| a ||| F0= -1 F1= -2 ||| -3\n0 ||| b ||| F0= -1 ||| -3\n", "marian"),
    ],
)
def test_a_missing_log_probability_is_an_error(write: Write, text: str, form: str) -> None:
    with pytest.raises(InputError, match=r"list: sentence 0: a candidate lacks '.*', which other candidates have"):
        converted(write, text, form)


def test_rare_features_of_a_large_model_are_omitted(write: Write) -> None:
    lines = [f"0 ||| a ||| lm=1 rule{number}=1 ||| -1\n" for number in range(400)]
    done, found = converted(write, "".join(lines))
    assert done.labels == ["Score", "lm"] and done.left_out == 400
    assert found.splitlines()[399] == "0 ||| a ||| Score= -1 lm= 1 ||| -1"


def test_a_wanted_feature_that_equals_the_score_by_chance_is_written(write: Write) -> None:
    dev = write("dev", "0 ||| a b ||| F0= -4 ||| -2\n")
    convert(str(dev), str(dev.with_name("dev.nbest")), format_name="marian")
    test = write("test", "0 ||| a ||| F0= -2 ||| -2\n")
    done = convert(str(test), str(test.with_name("again")), format_name="marian", like=str(dev.with_name("dev.nbest")))
    assert test.with_name("again").read_text() == "0 ||| a ||| Score= -2 F0= -2 ||| -2\n"
    assert (done.absent, done.left_out) == ([], 0)


def test_convert_with_the_features_of_another_list(write: Write) -> None:
    """Decoders do not print features that are 0, so lists may have different features."""
    dev = write("dev", EXAMPLES["cdec"])
    convert(str(dev), str(dev.with_name("dev.nbest")))
    test = write("test", "0 ||| a ||| Other=1 LanguageModel=-3 Glue=5 ||| -2\n")
    done = convert(str(test), str(test.with_name("test.nbest")), like=str(dev.with_name("dev.nbest")))
    assert test.with_name("test.nbest").read_text() == (
        "0 ||| a ||| Score= -2 Glue= 5 LanguageModel= -3 PhraseModel0= 0 WordPenalty= 0 PassThrough= 0 ||| -2\n"
    )
    assert done.left_out == 1
    with pytest.raises(InputError, match="test: no feature Score, expected a list that `convert` wrote"):
        like = str(write("test", "0 ||| a ||| A= 1 ||| 1\n"))
        convert(str(test), str(test.with_name("again")), like=like, format_name="cdec")


@pytest.mark.parametrize(
    ("form", "text", "sentences"),
    [
        # OpenNMT-py 3.5.1 omits blank lines (onmt/inputters/text_utils.py line 100).
        ("opennmt-py", "a b\t-1\nc d\t-2\n", "02"),
        # The number of lines is a multiple of all three sentences and of the two that are not blank.
        ("opennmt-py", "a\t-1\nb\t-2\nc\t-3\nd\t-4\ne\t-5\nf\t-6\n", "000222"),
        ("opennmt-py", "a\t-1\nb\t-2\n\t-3\n\t-4\ne\t-5\nf\t-6\n", "001122"),
        ("ctranslate2", "-1 ||| a\n0 |||\n-2 ||| b\n", "012"),
    ],
)
def test_blank_source_lines(write: Write, form: str, text: str, sentences: str) -> None:
    _, found = converted(write, text, form, source="eins\n\ndrei\n")
    assert "".join(line[0] for line in found.splitlines()) == sentences


def test_flat_scores_of_sockeye_2(write: Write) -> None:
    row = {"scores": [0.41, 0.77], "sentence_id": 1, "translation": "a", "translations": ["a", "b"], "score": 0.41}
    assert converted(write, json.dumps(row) + "\n")[1].count("Score= -0.77") == 1


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("a b c\n", "", "list: unknown format. If it is an n-best list of a known decoder, name it with --format"),
        ("", "marian", "list: the list is empty"),
        ("\n", "", "list: the list is empty"),
        ("S-1\ta\n", "", "list: the list is empty"),
        ("0 ||| a ||| F0= -1\n", "marian", "list:1: expected 4 to 7 fields between '|||', found 3"),
        ("0 ||| a ||| b ||| F0= -1 ||| -1\n", "marian", "list:1: expected an alignment, found 'b'"),
        ("x ||| a ||| F0= -1 ||| -1\n", "marian", "list:1: expected a sentence id, found 'x'"),
        ("0 ||| a ||| F0= nan ||| -1\n", "marian", "list:1: not finite (nan)"),
        ("0 ||| a ||| lm=1 ||| -8,765\n", "joshua", "list:1: expected a number, found '-8,765'"),
        ("0 ||| a ||| lm=1 lm=2 ||| -8\n", "cdec", "list:1: feature 'lm' occurs twice"),
        ("0 ||| a ||| lm ||| -8\n", "cdec", "list:1: expected features such as 'name=value', found 'lm'"),
        ("0 ||| a ||| ||| b ||| lm=1 ||| -8\n", "cdec", "list:1: expected 4 to 5 fields between '|||', found 6"),
        ("0 ||| a ||| -inf ||| lm=1\n", "travatar", "list:1: not finite (-inf)"),
        ("\u00b2 ||| a ||| lm=1 ||| -8\n", "cdec", "list:1: expected a sentence id, found '\u00b2'"),
        ("-0.5 ||| a ||| b\n", "ctranslate2", "expected the same number for each sentence"),
        ("H-1\t-1\n", "fairseq", "list:1: expected H-ID, a score and a text, separated by tabs"),
        ("P-1\t-1\n", "fairseq", "list:1: P-1 without H-1 before it"),
        ("H-1\t-inf\ta\n", "fairseq", "list:1: not finite (-inf)"),
        ("H-1\t-1\ta ||| b\n", "fairseq", "list:1: '|||' in the text, which Moses' format cannot have: 'a ||| b'"),
        ("{}\n", "sockeye", "list:1: expected a finite number, found 'None'"),
        ("[1]\n", "sockeye", "list:1: expected a JSON object, found '[1]'"),
        ("[" * 9999 + "\n", "sockeye", "list:1: expected a JSON object, found '[[["),
        ('{"translations": 1, "scores": [1]}\n', "sockeye", "expected a list of translations or scores, found '1'"),
        ('{"translations": ["a"], "scores": [1, 2]}\n', "sockeye", "list:1: 1 translation, but 2 scores"),
        ('{"translations": ["a"], "scores": [NaN]}\n', "sockeye", "list:1: not finite (nan)"),
        ('{"translations": ["a"], "scores": [true]}\n', "sockeye", "expected a finite number, found 'True'"),
        (
            '{"translations": ["a"], "scores": [1' + "0" * 400 + "]}\n",
            "sockeye",
            "expected a finite number, found '100",
        ),
        ('{"hypotheses": ["a\\ud83d"], "scores": [1]}\n', "ctranslate2-json", "list:1: expected a text, found"),
        ('{"hypotheses": ["a"]}\n', "ctranslate2-json", "expected a list of translations or scores, found 'None'"),
        ("a\nb\n", "opennmt-py", "list:1: expected a text, a tab and a score. Translate with -with_score"),
        ("-1 ||| a\n" * 3, "", "list: 3 lines for 2 source sentences, expected the same number"),
        ("-1\n-1\n", "ctranslate2", "list:1: expected 2 to 4 fields between '|||', found 1"),
    ],
)
def test_wrong_lists_are_errors(write: Write, text: str, form: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        converted(write, text, form)
    assert message in str(error.value)


def test_formats_without_ids_need_the_source(write: Write) -> None:
    path = write("list", EXAMPLES["ctranslate2"])
    with pytest.raises(InputError, match="this format has no sentence ids, so the source text is needed"):
        convert(str(path), str(path.with_name("output")))


@pytest.mark.parametrize("form", FORMATS)
def test_from_convert_to_rerank(write: Write, command: Callable[..., tuple[int, bytes, str]], form: str) -> None:
    path, source = write("list", EXAMPLES[form]), write("source", "eins zwei\ndrei\n")
    output, weights, ranked = (path.with_name(name) for name in ("nbest.gz", "weights.ini", "ranked"))
    words = ["convert", path, "--output", output, "--weights", weights, "--format", form]
    status, _, errors = command(*words, "--source", source)
    assert status == 0 and f"{form}: " in errors
    chosen = {label: number / 4 for number, label in enumerate(read_weights(str(weights)), start=1)}
    weights.write_text("".join(f"{label}= {weight}\n" for label, weight in chosen.items()))
    words = ["rerank", output, "--weights", weights, "--sentences", 30, "--on-missing", "blank", "--nbest", ranked]
    assert command(*words)[0] == 0
    by_hand = [
        (each.sentence, sum(chosen[name] * value for name, (value,) in each.dense))
        for group in read_nbest(str(output))
        for each in group.hypotheses
    ]
    totals = [(each.sentence, each.total) for group in read_nbest(str(ranked)) for each in group.hypotheses]
    np.testing.assert_allclose(sorted(totals), sorted(by_hand), atol=1e-4)
    assert totals == sorted(totals, key=lambda each: (each[0], -(each[1] or 0.0)))
