import gzip
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]


def test_the_sample_is_valid(command: Command, sample: Path) -> None:
    status, out, _ = command(
        "validate", sample / "dev.nbest.gz", "--source", sample / "dev.de", "--reference", sample / "dev.en"
    )
    text = out.decode()
    assert status == 0
    assert "400 sentences, ids 0 to 399, 0 missing" in text
    assert "candidates: 36,329 (4 to 100 per sentence, median 100), 0 repeated texts, 0 empty texts" in text
    assert "LexicalReordering0(6), Distortion0(1), LM0(1)" in text
    assert "field 5, alignment: in 36,329 lines" in text
    assert text.endswith("errors: 0, warnings: 0\n")


def test_all_errors_are_reported_with_their_lines(command: Command, write: Write) -> None:
    nbest = write(
        "list",
        "0 ||| a ||| L= 1 ||| 0 ||| 0-1=0-1 2=2 ||| 0-0 \n"
        "x ||| a ||| L= 1\n"
        "0 ||| a ||| L= 1 2\n"
        "5 ||| a ||| L= 1 s_x= 1\n"
        "1 |||  ||| L= nan\n"
        "1 |||  ||| L= 1\n"
        "0 ||| b ||| L= 1\n"
        "2 ||| b\n",
    )
    status, out, _ = command("validate", nbest, "--source", write("source", "x\ny\nz\n"))
    text = out.decode()
    assert status == 2
    faults = [line.removeprefix(f"error: {nbest}") for line in text.split("\n") if line.startswith("error: ")]
    assert faults == [
        ":2: expected a sentence id, found 'x'",
        ":3: feature 'L' has 2 values, earlier lines have 1",
        f":4: sentence 5 is beyond {nbest.parent / 'source'}, which has 3 lines",
        ":5: feature 'L': not finite (nan)",
        ":7: sentence 0 occurs again after other sentences. `moses-rerank validate --regroup` sorts a list by id",
        ":8: expected at least 3 fields between '|||', found 2",
    ]
    assert "field 5, segmentation: in 1 line" in text
    assert "field 6, alignment: in 1 line" in text
    assert "1 empty" in text


def test_mismatches_of_list_reference_and_weights_are_reported(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| don &apos;t |0-1| ||| L= 1 A= 1\n0 ||| don &apos;t |0-1| ||| L= 1 A= 2\n")
    reference, weights = write("reference", "Don 't\n"), write("weights", "[weight]\nL= 1 2\nB= 1\nC_D= 1 2\nE_F= 1\n")
    status, out, _ = command("validate", nbest, "--reference", reference, "--weights", weights)
    text = out.decode()
    assert f"warning: {nbest}:1: segmentation marks" in text
    assert "warning: only the list has escaped characters such as &apos;" in text
    assert "warning: only the reference has upper case letters" in text
    assert f"warning: feature 'A' has no weight in {weights}" in text
    assert "warning: weights without a feature in the list: B, C_D\n" in text
    assert "feature 'L' has 1 value in the list and 2 weights" in text
    assert "1 repeated text," in text
    assert status == 2


def test_regroup_sorts_by_id_and_keeps_the_order_of_candidates(command: Command, write: Write, tmp_path: Path) -> None:
    nbest = write("list", "1 ||| c ||| L= 1\n\n0 ||| a ||| L= 1\r\n1 ||| b ||| L= 1\n0 ||| d ||| L= 1")
    assert command("validate", nbest, "--regroup", "--output", tmp_path / "out")[0] == 0
    expected = b"0 ||| a ||| L= 1\r\n0 ||| d ||| L= 1\n1 ||| c ||| L= 1\n1 ||| b ||| L= 1\n"
    assert (tmp_path / "out").read_bytes() == expected


@pytest.mark.parametrize("option", ["--source", "--reference", "--weights"])
def test_report_options_with_regroup_are_errors(option: str, command: Command, write: Write) -> None:
    status, _, err = command("validate", write("list", "0 ||| a ||| F= 1 ||| 1\n"), "--regroup", option, "x")
    assert status == 2 and f"{option} is for the report, which --regroup does not make" in err


def test_regroup_of_an_empty_list_is_an_error(command: Command, write: Write, tmp_path: Path) -> None:
    status, _, err = command("validate", write("list", ""), "--regroup", "--output", tmp_path / "out")
    assert (status, "list: the list is empty" in err, (tmp_path / "out").exists()) == (2, True, False)


def test_regroup_prints_the_number_of_scattered_sentences(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| a ||| L= 1\n1 ||| b ||| L= 1\n0 ||| c ||| L= 1\n")
    assert "were not adjacent: 1\n" in command("validate", nbest, "--regroup")[2]


def test_decreasing_ids_and_missing_candidates_are_reported(command: Command, write: Write) -> None:
    nbest = write("list", "1 ||| a ||| L= 1\n0 ||| b ||| L= 1\n")
    status, out, _ = command("validate", nbest, "--source", write("s", "x\n" * 5), "--reference", write("r", "x\n" * 4))
    text = out.decode()
    assert status == 2
    assert f"warning: {nbest}:2: the id decreases" in text
    assert "error: source and references differ in length" in text
    assert "warning: 3 of 5 sentences have no candidates, the first is 2" in text


def test_an_empty_list_is_an_error(command: Command, write: Write) -> None:
    status, out, _ = command("validate", write("list", ""))
    assert status == 2
    assert "no line of the list can be read" in out.decode()


def test_alignments_reveal_the_source_of_another_set(command: Command, sample: Path) -> None:
    out = command("validate", sample / "test.nbest.gz", "--source", sample / "dev.de")[1].decode()
    assert "lines point beyond the end of the source. Does it belong to this list?" in out


def test_a_repeated_id_outside_a_short_source(command: Command, write: Write) -> None:
    lines = [f"{sentence} ||| a ||| L= 1 ||| 0 ||| 0-9\n" for sentence in (0, 3, 3, 1, 3, 3)]
    status, out, _ = command("validate", write("list", "".join(lines)), "--source", write("source", "x\ny\n"))
    assert status == 2
    assert b"list:2: sentence 3 is beyond" in out and b"list:5: sentence 3 occurs again after other sentences" in out
    assert b"candidates: 6 " in out


def test_empty_lines_are_a_warning(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| a ||| L= 1 ||| 0\n\n1 ||| b ||| L= 2 ||| 0\n\n")
    status, out, _ = command("validate", nbest)
    assert status == 0
    assert f"warning: {nbest}: 2 empty lines, the first is line 2, which all commands skip\n" in out.decode()


def test_missing_references_are_counted(command: Command, write: Write) -> None:
    nbest = write("list", "".join(f"{sentence} ||| a ||| L= 1 ||| 0\n" for sentence in range(3)))
    first, second = write("first", "a\nb\n\n"), write("second", "a\n \n\n")
    status, out, _ = command("validate", nbest, "--reference", first, "--reference", second)
    warning = f"warning: {second}:2: missing reference (blank line, 1 in all). It does not count"
    assert status == 0
    assert [line for line in out.decode().split("\n") if "blank" in line] == [warning]


def test_a_blank_line_of_the_only_reference_is_not_missing(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| a ||| L= 1 ||| 0\n")
    out = command("validate", nbest, "--reference", write("reference", "\n"))[1].decode()
    assert out.endswith("errors: 0, warnings: 0\n")


def test_a_feature_with_another_number_of_weights_is_an_error(command: Command, write: Write) -> None:
    nbest, weights = write("list", "0 ||| a ||| T= 1 2 ||| 0\n"), write("w", "T= 1\n")
    fault = "feature 'T' has 2 values in the list and 1 weight"
    status, out, _ = command("validate", nbest, "--weights", weights)
    assert (status, f"error: {weights}: {fault}\n" in out.decode()) == (2, True)
    status, _, err = command("rerank", nbest, "--weights", weights)
    assert (status, f"{nbest}:1: {fault} in {weights}\n" in err) == (2, True)
    status, _, err = command("tune", nbest, "--reference", write("ref", "a\n"), "--initial-weights", weights)
    assert (status, f"{weights}: {fault}\n" in err) == (2, True)
    status, _, err = command("score", nbest, "--source", write("src", "a\n"), "--feature", f"Rest=rest:{weights}")
    assert (status, f"{nbest}:1: feature 'rest': {fault} in {weights}\n" in err) == (2, True)


def test_a_total_that_is_not_a_number_is_a_warning(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| a ||| A= 1 ||| -1\n0 ||| b ||| A= 1 ||| xx\n0 ||| c ||| A= 1 ||| nan\n")
    status, out, _ = command("validate", nbest)
    assert status == 0 and f"warning: {nbest}:2: no total in the fourth field, found 'xx'. Features" in out.decode()


def test_tabs_in_a_list_and_a_reference(command: Command, write: Write) -> None:
    """Sources are split at tabs, so their tabs are no warning. Lists and references are not split at tabs."""
    nbest = write("list", "0 ||| a b ||| L= 1\n0 ||| a\tb ||| L= 1\n0 ||| c\td ||| L= 1\n")
    texts = ("--source", write("source", "x\ty\n"), "--reference", write("reference", "\ta b\t\n"))
    status, out, _ = command("validate", nbest, *texts, "--reference", write("other", "a\tb\n"))
    tab = "a tab inside a word: lists and references are split at spaces only, as Moses' extractor does"
    warnings = [line for line in out.decode().split("\n") if line.startswith("warning: ")]
    assert warnings == [f"warning: {nbest.parent / 'other'}:1: {tab}", f"warning: {nbest}:2: {tab}"]
    assert status == 0


def test_links_of_a_source_with_tabs_are_inside_it(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| a b c d ||| L= 1 ||| 0 ||| 0-0 3-3\n")
    assert command("validate", nbest, "--source", write("source", "w\tx\ty\tz\n"))[1].endswith(b"warnings: 0\n")


def test_markup_in_a_source_is_an_error(command: Command, write: Write) -> None:
    nbest, source = write("list", "0 ||| a ||| L= 1\n"), write("source", 'a <n translation="b">y</n>\n')
    status, out, _ = command("validate", nbest, "--source", source)
    assert status == 2 and out.decode().endswith("errors: 1, warnings: 0\n")
    assert f"error: {source}:1: '<n translation=\"b\">' is markup for Moses' -xml-input" in out.decode()


def test_a_reference_in_sgml_is_an_error(command: Command, write: Write) -> None:
    nbest, reference = write("list", "0 ||| a ||| L= 1\n"), write("reference", '<refset setid="a">\n')
    status, _, err = command("validate", nbest, "--reference", reference)
    assert status == 2 and err.startswith(f"moses-rerank validate: {reference}:1: SGML or XML, expected plain text")


def warnings_of(command: Command, *arguments: object) -> list[str]:
    status, out, err = command("validate", *arguments)
    assert status == 0, err
    return [line.removeprefix("warning: ") for line in out.decode().splitlines() if line.startswith("warning: ")]


LINE = "{} ||| a b ||| L= 1 ||| 0 ||| {}\n"
PHRASES = [LINE.format(0, "0-0 1-1 "), LINE.format(0, "1-0 0-1 ")]
CHART = [LINE.format(0, "0-0 1-1 2-2 3-3 "), LINE.format(0, "0-0 1-2 2-1 3-3 ")]


@pytest.mark.parametrize(
    ("lines", "source", "target"),
    [
        (PHRASES, 0, 0),
        ([*PHRASES, LINE.format(0, "0-0 2-1 ")], 3, 0),
        ([*PHRASES, LINE.format(0, "1-0 2-1 ")], 3, 0),  # this line alone could be from a chart decoder
        ([*PHRASES, LINE.format(0, "0-0 1-2 ")], 0, 3),
        ([*PHRASES, LINE.format(0, "0-0 3-3 ")], 0, 0),  # both are end-of-sentence links of a chart decoder
        ([*PHRASES, LINE.format(0, "0-0 3-2 ")], 3, 3),
        (CHART, 0, 0),
        ([LINE.format(0, "1-1 2-2 "), LINE.format(0, "1-2 ")], 0, 0),  # a grammar that does not link <s> and </s>
        ([*CHART, LINE.format(0, "0-0 1-1 2-2 4-3 ")], 3, 0),
    ],
)
def test_alignment_links_after_the_last_word(
    command: Command, write: Write, lines: list[str], source: int, target: int
) -> None:
    """Chart decoders have such links, for `</s>`. `source` and `target` are lines with a warning, 0 for none."""
    nbest = write("list", "".join(lines))
    behind = f"{nbest}:{{}}: word alignments of 1 line point beyond the end of the "
    wanted = [f"{behind.format(source)}source. Does it belong to this list?"] * bool(source)
    wanted += [f"{behind.format(target)}translation"] * bool(target)
    assert warnings_of(command, nbest, "--source", write("source", "x y\n")) == wanted


def test_links_after_the_translation_are_found_without_the_source(command: Command, write: Write) -> None:
    nbest = write("list", "".join([*PHRASES, LINE.format(1, "0-0 5-2 ")]))
    assert warnings_of(command, nbest) == [
        f"{nbest}:3: word alignments of 1 line point beyond the end of the translation"
    ]
    assert warnings_of(command, write("chart", "".join(CHART))) == []


@pytest.mark.parametrize(
    ("fields", "known", "wanted"),
    [
        (["0-1=0-1 2=2", "0=0 1-2=1-2"], True, []),
        (
            ["0-1=0-1 2=2", "0-1=0-1 3=2", "0-2=0-1 3=2"],
            True,
            ["2: segmentations of 2 lines have phrases beyond the end of the source. Does it belong to this list?"],
        ),
        (["0-1=0-1 3=2"], False, []),
        (["0-1=0-1 2=3"], False, ["1: segmentations of 1 line have phrases beyond the end of the translation"]),
        (["1-0=0-1 2=2"], False, ["1: segmentations of 1 line have ranges that run backwards"]),
        (["0-1=0-1 1-2=2"], False, ["1: segmentations of 1 line have overlapping phrases"]),
        (["0-1=0-1 2=3 ||| 0-0 "], True, ["1: segmentations of 1 line have phrases beyond the end of the translation"]),
    ],
)
def test_wrong_segmentations_are_warnings(
    command: Command, write: Write, fields: list[str], known: bool, wanted: list[str]
) -> None:
    nbest = write("list", "".join(f"0 ||| a b c ||| L= 1 ||| 0 ||| {field}\n" for field in fields))
    source = ("--source", write("source", "x y z\n")) if known else ()
    assert warnings_of(command, nbest, *source) == [f"{nbest}:{each}" for each in wanted]


WHOLE = "0 ||| a b ||| L= 1 ||| -1.5 ||| 0-0 1-1 \n"
WITHOUT_SPACE = "0 ||| a b ||| L= 1 ||| -1.5 ||| 0-0 1-1\n"
SEGMENTED = "0 ||| a b c ||| L= 1 ||| -1.5 ||| 0-1=0-1 2=2\n"
BOTH = "0 ||| a b c ||| L= 1 ||| -1.5 ||| 0-1=0-1 2=2 ||| 0-0 1-1 \n"
NO_SPACE = "its field 5 does not end with a space, unlike that of the line before"
NO_LAST_WORD = "its field 5 does not reach the last word, unlike that of the line before"
TOTALS = [f"0 ||| a b ||| L= 1 ||| -{total}\n" for total in (1.25, 1.5, 1.5, 2, 2.125, 2.25)]


@pytest.mark.parametrize(
    ("lines", "lacks"),
    [
        ([WHOLE, WHOLE[:-1]], ""),
        ([WHOLE.rstrip()], ""),
        ([WHOLE, "1 |||  ||| L= 0 ||| 0 ||| "], ""),  # an empty translation
        ([WHOLE, "1 ||| a b c ||| L= 1 ||| -1.5 ||| 0-0 1-1 "], ""),  # the last word has no link
        ([WHOLE, "1 ||| a b c ||| L= 1 ||| -1.5 ||| "], ""),  # no word has a link
        (["0 |||  ||| L= 0 ||| 0 ||| \n", "1 ||| a b ||| L= 1 ||| -1.5 ||| 0-0 "], ""),
        (["0 |||  ||| L= 0 ||| 0 ||| \n", "1 ||| a b ||| L= 1 ||| -1.5 ||| 0-0 1-1"], NO_SPACE),
        ([WITHOUT_SPACE, WITHOUT_SPACE[:-1]], ""),
        ([WITHOUT_SPACE, WITHOUT_SPACE[:-2]], "its field 5 ends inside a link"),
        ([SEGMENTED, SEGMENTED[:-1]], ""),
        ([SEGMENTED, "1 |||  ||| L= 0 ||| 0 |||"], ""),
        ([SEGMENTED, SEGMENTED[:-2]], NO_LAST_WORD),
        ([SEGMENTED, SEGMENTED[:-5]], NO_LAST_WORD),
        ([SEGMENTED, SEGMENTED.rpartition("|||")[0] + "|||"], NO_LAST_WORD),
        (["0 |||  ||| L= 0 ||| 0 |||\n", SEGMENTED[:-1]], ""),
        (["0 |||  ||| L= 0 ||| 0 |||\n", SEGMENTED[:-5]], "its field 5 does not reach the last word"),
        ([BOTH, BOTH[:-1]], ""),
        ([BOTH, "1 |||  ||| L= 0 ||| 0 ||| ||| "], ""),
        ([BOTH, BOTH[:-2]], "its field 6 does not end with a space, unlike that of the line before"),
        ([BOTH, "1 ||| a b c ||| L= 1 ||| -1.5 ||| 0-1=0-1"], "5 fields, the line before has 6"),
        ([WHOLE, "0 ||| a b ||| L= 1"], "3 fields, the line before has 5"),
        ([WHOLE, "1 ||| a b ||| L= 1 ||| -1."], "4 fields, the line before has 5"),
        ([WHOLE, WHOLE[:-4]], "its field 5 ends inside a link"),
        ([WHOLE, WHOLE[:-3]], "its field 5 ends inside a link"),
        ([WHOLE, WHOLE[:-2]], NO_SPACE),
        ([TOTALS[0], "1 ||| a b ||| L= 1 ||| -"], "no total in the fourth field, found '-'"),
        ([TOTALS[0], "1 ||| a b ||| L= 1 ||| "], "no total in the fourth field"),
        ([*TOTALS, "0 ||| a b ||| L= 1 ||| -2"], "its total is higher than that of the line before"),
        ([*TOTALS, "0 ||| a b ||| L= 1 ||| -2.5"], ""),
        ([*reversed(TOTALS), "0 ||| a b ||| L= 1 ||| -1"], ""),
        ([*TOTALS, "1 ||| a b ||| L= 1 ||| -1"], ""),
    ],
)
def test_a_truncated_last_line_is_a_warning(command: Command, write: Write, lines: list[str], lacks: str) -> None:
    """Moses writes a space after each link, phrases up to the last word, and totals in decreasing order."""
    nbest = write("list", "".join(lines))
    cut = f"{nbest}:{len(lines)}: the last line was cut off: no line end, and {lacks}"
    found = [line for line in warnings_of(command, nbest) if "cut off" in line]
    assert found == ([cut] if lacks else [])
    scored = ("score", nbest, "--source", write("source", "x y\nz\n"), "--feature", "length")
    for arguments in (scored, ("rerank", nbest, "--weights", write("weights", "L= 1\n"))):
        status, _, err = command(*arguments)
        assert (status, f"warning: {cut}\n" in err) == (0, bool(lacks)), err


def test_an_incomplete_last_line_is_reported_as_truncated(command: Command, write: Write) -> None:
    nbest = write("list", "0 ||| a ||| L= 1 ||| 0\n0 ||| b ||| L= ")
    fault = f"{nbest}:2: feature 'L' has no value. The line has no line end, so the list was probably cut off here\n"
    assert fault in command("validate", nbest)[1].decode()
    assert fault in command("score", nbest, "--source", write("source", "x\n"), "--feature", "length")[2]


def test_real_lists_without_the_last_newline_are_not_truncated(command: Command, write: Write, data: Path) -> None:
    """Only the last lines of each list are checked."""
    paths = sorted(data.glob("**/*.nbest.gz"))
    assert len(paths) >= 2
    for path in paths:
        with gzip.open(path) as stream:
            last = write("list", b"".join(deque(stream, maxlen=250)).removesuffix(b"\n"))
        assert warnings_of(command, last)[1:] == [], path
