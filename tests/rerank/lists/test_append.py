import gzip
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from features import reader
from features.arrays import Array
from features.feature import Sentence
from features.feature_set import FeatureSet
from features.table import FEATURES, Kind
from moses_io.files.errors import InputError
from moses_io.files.text import tokens
from moses_io.nbest import read_hypotheses
from rerank.lists import scoring
from rerank.lists.append import Sample, join_features

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]


def test_scores_are_appended_and_other_fields_do_not_change(
    command: Command, sample: Path, models: dict[str, Path]
) -> None:
    nbest, source = sample / "test.nbest.gz", sample / "test.de"
    features = [f"NMT=neural:{models['forward']}", f"Back=neural:{models['backward']}", "length"]
    requests = [argument for feature in features for argument in ("--feature", feature)]
    head = b"".join(gzip.decompress(nbest.read_bytes()).splitlines(keepends=True)[:150])
    path = models["forward"].parent / "head"
    path.write_bytes(head)
    status, out, err = command("score", path, "--source", source, *requests, "--device", "cpu")
    assert status == 0
    for label in ("NMT", "Back", "Length0"):
        assert f"{label} = " in err
    scored = models["forward"].parent / "scored"
    scored.write_bytes(out)
    before, after = list(read_hypotheses(str(path))), list(read_hypotheses(str(scored)))
    assert [(h.fields[:2], h.fields[3:]) for h in after] == [(h.fields[:2], h.fields[3:]) for h in before]
    for old, new in zip(before, after, strict=True):
        assert new.fields[2].startswith(old.fields[2].rstrip(b" "))
        values = dict(new.dense)
        assert values["Length0"] == (len(tokens(new.text)),)
        assert values["NMT"][0] < 0 and values["Back"][0] < 0
    again = command("score", path, "--source", source, *requests, "--device", "cpu")[1]
    assert again == out


def test_a_tab_in_a_source_separates_words(command: Command, write: Write, models: dict[str, Path]) -> None:
    """Expected: four words, four phrases of one word, no unaligned words, all steps monotone."""
    nbest = write("list", "0 ||| the house is small  ||| A= 1 ||| 0 ||| 0-0 1-1 2-2 3-3\n")
    kinds = ("P=phrases", f"N=neural:{models['forward']}", f"L=links:{models['forward']}", "C=copied")
    features = [part for kind in kinds for part in ("--feature", kind)]
    spaces, tabs = (
        command("score", nbest, "--source", write(f"source{number}", text), *features, "--device", "cpu")[:2]
        for number, text in enumerate(("das Haus ist klein\n", "das\tHaus \tist klein\t\n"))
    )
    assert spaces == tabs and tabs[0] == 0 and b" P= 4 1 0 0 1 " in tabs[1]


@pytest.mark.parametrize(
    ("first", "second", "phrases", "warned"),
    [
        ("0-0 1-1", "1-1 2-1", "1 2 -1 -1 0", True),  # the link 2-1 is omitted, 1-1 is kept
        ("0-0 1-1 2-2 3-3", "1-1 2-1", "1 2 0 -1 1", False),  # links 0-0 and 1-0
        ("1-1 2-2", "1-1", "1 2 -1 -1 1", False),  # a grammar that does not link <s> and </s>: the link 0-0
        ("0-0 1-1", "1-1", "1 2 -1 -1 0", False),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_numbering_of_links_follows_the_majority_of_lines(
    command: Command, write: Write, first: str, second: str, phrases: str, warned: bool, turned: bool
) -> None:
    """Values: phrases, mean length, unaligned source and target words, monotone steps. `validate` also warns."""
    lines = [f"0 ||| a b ||| L= 1 ||| 0 ||| {links}\n" for links in (first, second)]
    nbest, source = write("list", "".join(lines[::-1] if turned else lines)), write("source", "x y\n")
    status, out, err = command("score", nbest, "--source", source, "--feature", "phrases")
    assert status == 0
    assert f" Phrases0= {phrases} ".encode() in out.splitlines()[0 if turned else 1]
    assert ("links beyond the end" in err) == warned
    report = command("validate", nbest, "--source", source)[1]
    assert (b"word alignments of 1 line point beyond the end of the source" in report) == warned


def test_numbering_of_links_follows_earlier_sentences(command: Command, write: Write) -> None:
    lines = [f"{n} ||| a b ||| L= 1 ||| 0 ||| {links}\n" for n, links in enumerate(("1-1 2-1", "0-0 1-1", "1-1 2-1"))]
    arguments = ("score", write("list", "".join(lines)), "--source", write("source", "x y\n" * 3))
    status, out, _ = command(*arguments, "--feature", "P=phrases")
    found = [line.partition(b" P= ")[2].partition(b" ||| ")[0] for line in out.splitlines()]
    assert (status, found) == (0, [b"1 2 0 -1 1", b"2 1 0 0 1", b"1 2 -1 -1 0"])


@pytest.mark.parametrize(
    ("line", "feature", "message"),
    [
        ("0 ||| a ||| L= 1", "L=length", "list:1: the list already has a feature 'L'. Use `rerank` for a list"),
        ("2 ||| a ||| L= 1", "length", "list:1: sentence 2 is beyond the source, which has 2 lines (ids from 0 to 1)"),
        ("0 ||| a |0-0| ||| L= 1", "length", "list:1: segmentation marks such as |0-1| in the text"),
        ("0 ||| a", "length", "list:1: expected at least 3 fields"),
        ("0 ||| a ||| L= 1", "lenght", "unknown feature 'lenght'. Did you mean 'length'?"),
        ("0 ||| a ||| L= 1", "neural:nowhere", "nowhere: not a model folder"),
        ("0 ||| a ||| L= 1", "My_L=length", "label 'My_L'"),
    ],
)
def test_wrong_lists_and_features_are_errors(
    command: Command, write: Write, tmp_path: Path, line: str, feature: str, message: str
) -> None:
    out = tmp_path / "out"
    nbest, source = write("list", line + " ||| 0\n" if "|||" in line[8:] else line + "\n"), write("source", "x\ny\n")
    status, _, err = command("score", nbest, "--source", source, "--feature", feature, "--output", out)
    assert status == 2
    assert message in err.rstrip("\n").split("\n")[-1]
    assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list", "source"]


@pytest.mark.parametrize(
    "features", [["Own=neural:{forward}"], ["Own=neural:{forward}", "Far=agreement:{forward},{backward}"]]
)
def test_an_interrupted_scoring_is_resumed(
    command: Command, sample: Path, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    features: list[str],
) -> None:  # fmt: skip
    """This includes features of attention, which are not cached. A complete list has no journal."""
    monkeypatch.setattr(reader, "GROUP", {"cpu": 64})
    nbest, requests = tmp_path / "list", [part for each in features for part in ("--feature", each.format(**models))]
    nbest.write_bytes(
        b"".join(gzip.decompress((sample / "test.nbest.gz").read_bytes()).splitlines(keepends=True)[:400])
    )
    arguments = ("score", nbest, "--source", sample / "test.de", *requests, "--device", "cpu", "--output")
    groups, read = [], FeatureSet.values_of_models

    def killed(self: FeatureSet, sentences: list[Sentence]) -> object:
        groups.append(sentences)
        if len(groups) == 3:
            raise KeyboardInterrupt
        return read(self, sentences)

    monkeypatch.setattr(FeatureSet, "values_of_models", killed)
    assert command(*arguments, tmp_path / "out.gz")[0] == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.gz.scored", "list"]
    assert command(*arguments, tmp_path / "out.gz")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list", "out.gz"]
    resumed = len(groups)
    assert command(*arguments, tmp_path / "whole.gz")[0] == 0
    assert len(groups) - resumed == resumed - 1 > 3, (
        "each group was read once, except the group in which the command was killed"
    )
    assert (tmp_path / "out.gz").read_bytes() == (tmp_path / "whole.gz").read_bytes()


def test_scores_of_another_model_are_not_resumed(
    command: Command, write: Write, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbest, source = write("list", "0 ||| the doctors ||| L= 1\n1 ||| bad"), write("source", "die ärzte\n" * 2)
    for name in ("forward", "backward"):
        arguments = ("score", nbest, "--source", source, "--feature", f"neural:{models[name]}", "--device", "cpu")
        assert command(*arguments, "--output", tmp_path / "out")[0] == 2
    monkeypatch.setattr(scoring, "BATCH", 1)
    assert command(*arguments, "--output", tmp_path / "out")[0] == 2
    nbest.write_text("0 ||| the doctors ||| L= 1\n")
    assert command(*arguments, "--output", tmp_path / "out")[0] == 0
    assert command(*arguments, "--output", tmp_path / "new")[0] == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "new").read_bytes()


class Infinite:
    signature = "infinite"

    def __init__(self, argument: str, device: str) -> None:
        pass

    def __call__(self, sentences: list[Sentence]) -> Array:
        rows = sum(len(candidates.hypotheses) for candidates in sentences)
        return np.array([[0.0]] * (rows - 1) + [[-np.inf]])


def test_a_value_that_is_not_finite_is_an_error(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FEATURES, "infinite", Kind(f"{__name__}:Infinite", "Inf", ""))
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or sys.modules[Infinite.__module__])
    nbest = write("list", "0 ||| a ||| L= 1\n7 ||| a ||| L= 1\n7 ||| b ||| L= 1\n")
    source = write("source", "x\n" * 9)
    status, _, err = command("score", nbest, "--source", source, "--feature", "Bad=infinite")
    assert status == 2
    assert "list:3: feature 'Bad': not finite, or an absolute value exceeds 3.4e+38" in err


def peak_kib(arguments: list[str]) -> int:
    """Return the peak memory of a command in KiB. `ru_maxrss` would include memory of the forking process."""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc/self/status, from which the peak memory is read")
    code = (
        "import sys\nfrom pathlib import Path\nfrom rerank.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    run = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return int(run.stdout)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_sentences(
    tmp_path: Path, sample: Path, models: dict[str, Path]
) -> None:
    """A list repeated 15 times has the same peak (within 20 %) as one repeated five times, which fills a batch."""
    with gzip.open(sample / "dev.nbest.gz") as stream:
        lines = [line for line in stream if int(line.split(b" ", 1)[0]) < 25]
    source = (sample / "dev.de").read_bytes().split(b"\n")[:25]
    peaks: dict[str, list[int]] = {"score": [], "rerank": []}
    for copies in (5, 15):
        nbest = tmp_path / f"{copies}.nbest"
        with nbest.open("wb") as stream:
            for copy in range(copies):
                for line in lines:
                    sentence, rest = line.split(b" ", 1)
                    stream.write(b"%d %s" % (int(sentence) + 25 * copy, rest))
        (tmp_path / f"{copies}.de").write_bytes(b"\n".join(source * copies) + b"\n")
        score = ["score", str(nbest), "--source", str(tmp_path / f"{copies}.de"), "--output", str(tmp_path / "scored")]
        peaks["score"].append(peak_kib([*score, "--feature", f"neural:{models['forward']}", "--device", "cpu"]))
        rerank = ["rerank", str(nbest), "--weights", str(sample / "moses.ini"), "--output", str(tmp_path / "out")]
        peaks["rerank"].append(peak_kib(rerank))
    for few, many in peaks.values():
        assert many < 1.2 * few


@pytest.mark.slow
@pytest.mark.parametrize(
    ("feature", "limit"),
    [("neural:{forward}", 50), ("agreement:{forward},{backward}", 250)],
    ids=["neural", "agreement"],
)
def test_memory_for_long_candidates_is_bounded(
    write: Write, tmp_path: Path, models: dict[str, Path], feature: str, limit: int
) -> None:
    """`limit` is the additional MiB for ten candidates of a thousand words, compared with candidates of one word."""
    peaks = []
    for words in (1, 1000):
        lines = [f"0 ||| {place}{' a' * (words - 1)} ||| L= 1 ||| 0\n" for place in range(10)]
        nbest, source = write(f"{words}.nbest", "".join(lines)), write(f"{words}.source", "b " * words + "\n")
        arguments = [
            "--feature",
            f"N={feature.format(**models)}",
            "--output",
            str(tmp_path / "scored"),
            "--device",
            "cpu",
        ]
        peaks.append(peak_kib(["score", str(nbest), "--source", str(source), *arguments]))
    assert peaks[1] - peaks[0] < limit * 1024


@pytest.mark.parametrize(
    ("model", "wanted"), [("forward", "score: 0 of 1 (step 3 of 5)"), ("backward", "score: 0 of 1 (candidate 2 of 2)")]
)
def test_progress_is_shown_within_a_sentence(
    command: Command, write: Write, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, model: str, wanted: str
) -> None:
    monkeypatch.setattr("features.progress.LOG_INTERVAL", -1.0)
    nbest, source = write("list", "0 ||| a b ||| L= 1 ||| 0\n0 ||| c d ||| L= 1 ||| 0\n"), write("source", "x y\n")
    request = f"N=neural:{models[model]}"
    _, _, err = command("score", nbest, "--source", source, "--feature", request, "--device", "cpu")
    assert wanted in err.splitlines()


def test_feature_files_of_another_list_are_errors(write: Write, tmp_path: Path) -> None:
    nbest = write("list", "0 ||| a ||| L= 1 ||| 0\n0 ||| b ||| L= 2 ||| 0\n")
    whole, output = write("whole", "A= 1\nA= 2\n"), tmp_path / "joined"
    join_features(str(nbest), [str(whole), str(write("other", "B= 3 4\nB= 5 6\n"))], str(output))
    assert output.read_text() == "0 ||| a ||| L= 1 A= 1 B= 3 4 ||| 0\n0 ||| b ||| L= 2 A= 2 B= 5 6 ||| 0\n"
    for wrong in ("A= 1\n", "A= 1\nA= 2\nA= 3\n"):
        for parts in ([str(whole), str(write("wrong", wrong))], [str(write("wrong", wrong))]):
            with pytest.raises(InputError, match=r"wrong: expected a line for each candidate of .*list"):
                join_features(str(nbest), parts, str(output))


def test_omitted_empty_lines_are_a_warning(command: Command, write: Write) -> None:
    nbest, source = write("list", "0 ||| a ||| L= 1\n\n\n"), write("source", "x\n")
    status, out, err = command("score", nbest, "--source", source, "--feature", "length")
    assert (status, out) == (0, b"0 ||| a ||| L= 1 Length0= 1\n")
    assert f"warning: {nbest}: 2 empty lines, the first is line 2, which the scored list does not have\n" in err


def test_missing_and_invalid_alignments_are_errors(command: Command, write: Write) -> None:
    nbest = write("list", f"0 ||| a ||| L= 1 ||| 0 ||| 0-0\n0 ||| b ||| L= 1 ||| 0 ||| {'1' * 5000}-0 0-7\n")
    arguments = ("score", nbest, "--source", write("source", "x\n"), "--feature", "phrases")
    status, _, err = command(*arguments)
    assert (status, "list:2: feature 'phrases': no alignment here" in err) == (2, True)
    nbest.write_text("0 ||| a ||| L= 1 ||| 0 ||| 0-0\n0 ||| b ||| L= 1 ||| 0 ||| 0-7\n")
    status, _, err = command(*arguments)
    assert (status, "list:2: word alignment beyond the 1 source and 1 target words" in err) == (2, True)


@pytest.mark.parametrize("name", ["n" * 250, "a\nb"])
def test_unusual_file_names_of_lists(
    command: Command, write: Write, tmp_path: Path, models: dict[str, Path], name: str
) -> None:
    nbest, source = write(name, "0 ||| the doctors ||| L= 1\n"), write(f"s{name[1:]}", "die Ärzte\n")
    arguments = ("--feature", f"N=neural:{models['forward']}", "--device", "cpu", "--output", tmp_path / f"o{name[1:]}")
    status, _, err = command("score", nbest, "--source", source, *arguments)
    assert status == 0, err
    assert b" N= -" in (tmp_path / f"o{name[1:]}").read_bytes()
    assert not list(tmp_path.glob(".*"))


def lengths(*sentences: Sentence) -> Array:
    return np.array([[float(len(hypothesis))] for each in sentences for hypothesis in each.hypotheses])


def test_the_largest_difference_is_found_in_any_order() -> None:
    sentences = [Sentence(n, ("x",), tuple(("a",) * k for k in range(n + 1))) for n in range(9)]
    compared: list[int] = []  # numbers of words. Only the last candidate has 8 words

    def scored(one: Sentence) -> Array:
        compared.append(len(one.hypotheses[0]))
        return lengths(one)

    differences = set()
    for size in (1, 7, 45, 99):
        sample = Sample(size, random.Random(size))
        for start in range(0, 9, 3):
            values = lengths(*sentences[start : start + 3])
            values[-1] += 0.5 if start == 6 else 0
            sample.add(sentences[start : start + 3], [values])
        compared.clear()
        count, difference = sample.largest_difference(0, scored)
        assert count == len(compared) == min(size, 45)
        assert difference == (0.5 if 8 in compared else 0.0)
        differences.add(difference)
    assert differences == {0.0, 0.5}
    assert Sample(3, random.Random(1)).largest_difference(0, lengths) == (0, 0.0)


def test_all_candidates_are_sampled_with_equal_probability() -> None:
    rounds = 3000
    counts = np.zeros(6)
    for seed in range(rounds):
        sample = Sample(2, random.Random(seed))
        for n in range(6):
            sample.add([Sentence(n, (), (("a",) * n,))], [np.array([[0.0]])])
        for one, _ in sample._sample:
            counts[one.sentence] += 1
    np.testing.assert_allclose(counts / rounds, 1 / 3, atol=0.05)


def test_verify_prints_the_largest_difference(
    command: Command, sample: Path, models: dict[str, Path], tmp_path: Path
) -> None:
    nbest = tmp_path / "list"
    with gzip.open(sample / "dev.nbest.gz", "rb") as stream:
        nbest.write_bytes(b"".join(islice(stream, 2000)))
    requests = ("--feature", f"A=neural:{models['forward']}", "--feature", "B=length", "--device", "cpu")
    arguments = ("score", nbest, "--source", sample / "dev.de", *requests, "--output", "/dev/null")
    status, _, err = command(*arguments, "--verify", 20)
    lines = {line[0]: line for line in err.splitlines() if "one by one" in line}
    assert status == 0 and set(lines) == {"A"}
    assert "B: not a feature of a model, nothing to verify" in err
    assert float(lines["A"].split()[-1]) == pytest.approx(0, abs=1e-4)
    assert lines["A"].startswith("A: 20 candidates")


def test_verify_features_of_alignments(command: Command, write: Write, models: dict[str, Path]) -> None:
    nbest = write("list", "".join(f"0 ||| {text} ||| L= 1 ||| 0 ||| 0-0\n" for text in ("a b", "a", "c a")))
    arguments = ("score", nbest, "--source", write("source", "x\n"), "--feature", f"A=links:{models['forward']}")
    status, _, err = command(*arguments, "--verify", 3, "--device", "cpu")
    (line,) = [line for line in err.splitlines() if "one by one" in line]
    assert status == 0 and float(line.split()[-1]) == pytest.approx(0, abs=1e-4)
