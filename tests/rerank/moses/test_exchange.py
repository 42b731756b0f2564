"""Export of a list to files of the Moses tuners, and import of their results."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from moses_io.files.errors import InputError
from moses_io.weights import read_weight_file, read_weights
from rerank.metrics.metric import Metric
from rerank.tuning.tuning_set import Extracted

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

LIST = """\
0 ||| the old house is red . ||| L= -1.5 TM= 0.25 -2 ||| 0
0 ||| a red house ||| L= -3 TM= 0 -1 s_x= 1 s_y=a= 2 ||| 0
4 ||| a small dog ||| L= 0 TM= 1 1 s_x= 3 ||| 0
"""
REFERENCE = "the old house is red .\n\n\n\na small dog .\n"


def exported(command: Command, write: Write, tmp_path: Path, text: str = LIST) -> Path:
    folder = tmp_path / "tuning"
    initial = write("initial", "[weight]\nL= 0.5\nTM= 0.25 -0.25\ns_x= 0.1\n")
    arguments = ("--reference", write("ref", REFERENCE), "--initial-weights", initial, "--output", folder)
    status, _, err = command("export", write("list", text), *arguments)
    assert status == 0, err
    return folder


def test_exported_files_contain_the_list(command: Command, write: Write, tmp_path: Path) -> None:
    folder = exported(command, write, tmp_path)
    lines = (folder / "features.dat").read_text().split("\n")
    assert lines[0] == "FEATURES_TXT_BEGIN_0 0 2 3 L_0 TM_0 TM_1 "
    assert lines[2] == "-3 0 -1 s_x=1 s_y=a=2 "
    assert (folder / "scores.dat").read_text().split("\n")[1] == "6 6 5 5 4 4 3 3 6 "
    found = Extracted(str(folder / "features.dat"), str(folder / "scores.dat")).read(Metric("bleu"))
    assert found.candidates.space.dense == (("L", 1), ("TM", 2)) and found.candidates.sentences.tolist() == [0, 4]
    assert (folder / "init.dense").read_text() == "L= 0.5\nTM= 0.25\nTM= -0.25\n"
    assert (folder / "init.opt").read_text() == "0.5 0.25 -0.25 1\n0 0 0 0\n1 1 1 1\n"


# Checks arguments and initial weights like Moses' mert (mert.cpp:271-330), then fails or writes its result.
MERT = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in -d) dense=$2 ;; --ifile) initial=$2 ;; --sparse-weights) sparse=1 ;; esac
    shift
done
wanted=$((dense + ${sparse:-0}))
while read -r line; do
    set -- $line
    [ $# -ge $wanted ] || { echo "Too few maximum weights." >&2; exit 3; }
    [ $# -le $wanted ] || { echo "Too many maximum weights." >&2; exit 3; }
done < "$initial"
[ ! "$FAULT" ] || { seq 100 >&2; echo "$FAULT" >&2; exit 5; }
echo "$initial: $wanted" > weights.txt
"""


def tuned(folder: Path, monkeypatch: pytest.MonkeyPatch, tool: str, program: str) -> subprocess.CompletedProcess[str]:
    """Run the exported script with a program that replaces the Moses tuner."""
    (folder.parent / "bin").mkdir()
    (folder.parent / "bin" / tool).write_text(program)
    (folder.parent / "bin" / tool).chmod(0o755)
    monkeypatch.setenv("MOSES", "bin")
    return subprocess.run([f"{folder}/tune.sh", tool], check=False, capture_output=True, text=True, cwd=folder.parent)


@pytest.mark.parametrize(("text", "dimensions"), [(LIST, 4), (LIST.split("s_x")[0] + "||| 0\n", 3)])
def test_mert_gets_the_number_of_dense_weights(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, dimensions: int
) -> None:
    """Sparse weights are one additional dimension, which mert adds itself."""
    folder = exported(command, write, tmp_path, text)
    ran = tuned(folder, monkeypatch, "mert", MERT)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (folder / "weights.txt").read_text() == f"init.opt: {dimensions}\n"


def test_the_end_of_the_mert_log_is_shown_on_failure(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = exported(command, write, tmp_path)
    monkeypatch.setenv("FAULT", "features.dat: no such feature")
    ran = tuned(folder, monkeypatch, "mert", MERT)
    lines = ran.stderr.splitlines()
    assert (ran.returncode, lines[0], lines[-1], len(lines)) == (
        5,
        "mert: exit status 5, mert.log ends with:",
        "features.dat: no such feature",
        21,
    )


def test_the_errors_of_kbmira_are_shown(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = exported(command, write, tmp_path)
    ran = tuned(folder, monkeypatch, "kbmira", "#!/bin/sh\necho no scores >&2; exit 4\n")
    assert (ran.returncode, ran.stderr) == (4, "no scores\n")


@pytest.mark.parametrize("moses", [None, "nowhere"])
def test_the_script_without_the_folder_of_moses_is_an_error(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moses: str | None
) -> None:
    folder = exported(command, write, tmp_path)
    monkeypatch.delenv("MOSES", raising=False)
    if moses:
        monkeypatch.setenv("MOSES", moses)
    ran = subprocess.run([f"{folder}/tune.sh"], check=False, capture_output=True, text=True)
    (line,) = ran.stderr.splitlines()
    assert ran.returncode and ("nowhere" if moses else "MOSES: set it to the folder") in line


def test_untuneable_weights_are_preserved(command: Command, write: Write, tmp_path: Path) -> None:
    """They must be written, because Moses uses 1 for a weight that is missing in its ini."""
    features = "[feature]\nA name=TM tuneable-components=1,0,1\nB name=P tuneable=false\n"
    initial = write("s", f"{features}[weight]\nL= 0.5\nTM= 0.25 9 -0.25\nP= 0.3\nUnknownWordPenalty0= 0.7\ns_x= 0.1\n")
    arguments = ("--reference", write("ref", REFERENCE), "--initial-weights", initial)
    assert command("export", write("list", LIST), *arguments, "--output", tmp_path / "tuning")[0] == 0
    assert (tmp_path / "tuning" / "init.dense").read_text() == "L= 0.5\nTM= 0.25\nTM= -0.25\n"
    result = write("kbmira.out", "F0 1\nF1 2\nF2 -1\ns_x 4\n")
    _, imported, _ = command("import-weights", tmp_path / "tuning", result)
    assert b"\nL= 0.25\nTM= 0.5 9 -0.25\ns_x= 1\nP= 0.3\nUnknownWordPenalty0= 0.7\n" in imported
    tuned = write("tuned.ini", command("tune", write("list", LIST), *arguments, "--tuner", "kbmira")[1])
    content = read_weight_file(str(tuned))
    assert {name: each.weights for name, each in content.untuneable.items()} == {
        "TM": (None, 9.0, None), "P": (0.3,), "UnknownWordPenalty0": (0.7,),
    }  # fmt: skip
    assert command("rerank", write("list", LIST), "--weights", tuned, "--on-missing", "blank")[0] == 0


def test_a_sparse_feature_of_the_word_equals_sign(command: Command, write: Write, tmp_path: Path) -> None:
    """Its name ends with `=`. In an ini another `=` follows, but not in files of the Moses tuners."""
    folder = exported(command, write, tmp_path, "0 ||| the old house is red . ||| L= 1 TM= 1 2 w_a~== 1 ||| 0\n")
    assert (folder / "sparse-weights").read_text() == "w_a~= 0\n"
    _, imported, _ = command("import-weights", folder, write("kbmira.out", "F0 1\nF1 2\nF2 -1\nw_a~= 4\n"))
    assert b"w_a~== 1\n" in imported


def test_reference_lengths_exclude_missing_references(command: Command, write: Write, tmp_path: Path) -> None:
    """It is 6 for the first sentence, not 0. The second file has only its last reference, of 3 tokens."""
    second = write("second", " \n\n\n\na small cat\n")
    arguments = (
        "--reference",
        write("ref", REFERENCE),
        "--reference",
        second,
        "--initial-weights",
        write("initial", "L= 1\nTM= 1 1"),
    )
    status, _, err = command("export", write("list", LIST), *arguments, "--output", tmp_path / "tuning")
    assert status == 0, err
    rows = [line.split() for line in (tmp_path / "tuning" / "scores.dat").read_text().split("\n")]
    assert [row[-1] for row in rows if len(row) == 9] == ["6", "6", "3"]


HEAD, TAIL = "FEATURES_TXT_BEGIN_0 {} 1 {} {}\n", "FEATURES_TXT_END_0\n"
STATISTICS = "SCORES_TXT_BEGIN_0 {} 1 9 BLEU\n1 2 1 2 1 2 1 2 3\nSCORES_TXT_END_0\n"


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (((0, "LM0_0 TM0_0 LM0_0", "1 2 3"),), "values of a feature are not adjacent: LM0_0 TM0_0 LM0_0"),
        (((0, "L_0", "1"), (0, "L_0", "1")), "duplicate sentence 0"),
        (((0, "", "s_x=1"), (1, "L_0", "1")), "names or order of features differ from the first sentence"),
    ],
)
def test_wrong_extractor_files_are_errors(write: Write, blocks: tuple[tuple[int, str, str], ...], message: str) -> None:
    features = "".join(
        HEAD.format(sentence, len(names.split()), names) + f"{row}\n" + TAIL for sentence, names, row in blocks
    )
    statistics = "".join(STATISTICS.format(sentence) for sentence, _, _ in blocks)
    with pytest.raises(InputError, match=message):
        Extracted(str(write("features", features)), str(write("scores", statistics))).read(Metric("bleu"))


@pytest.mark.parametrize(
    ("result", "sparse"),
    [
        ("F0 0.5\nF1 -1\nF2 0.5\ns_x 0.2\n", 0.1),  # kbmira, megam
        ("0.5 -1 0.5 1 \n", 0.05),  # mert
        ("noise\nBest point: 0 0 1 1  => 0.1\nBest point: 0.5 -1 0.5 1  => 0.2\n", 0.05),  # log of mert
    ],
)
def test_import_results_of_the_tuners(
    command: Command, write: Write, tmp_path: Path, result: str, sparse: float
) -> None:
    folder = exported(command, write, tmp_path)
    status, ini, _ = command("import-weights", folder, write("out", result))
    assert status == 0
    weights = read_weights(str(write("ini", ini)))
    assert (weights["L"], weights["TM"]) == ((0.25,), (-0.5, 0.25))
    assert weights["s_x"] == pytest.approx((sparse,))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("1 2 3\n", "expected 4 weights, found 3"),
        ("F0 1\nF7 2\n", "out:2: expected 'F<k> weight' with k below 3"),
        ("", "out: the file is empty"),
        ("L= 0.5\n", "out:1: no feature 'L='"),
        ("F0 x\n", "out:1: expected 'F<k> weight'"),
        (f"F{'9' * 5000} 1\n", "out:1: no feature 'F9"),
        ("1 1e400 0 0\n", "out:1: expected 'F<k> weight'"),
        ("\n\nF0 x\n", "out:3: expected 'F<k> weight'"),
        ("0 0 0 0\n", "out: all dense weights are 0. The tuner found no weights with a score above 0"),
        ("F0 0\nF1 -0\nF2 0\ns_x 1\n", "out: all dense weights are 0"),
    ],
)
def test_results_that_do_not_match_are_errors(
    command: Command, write: Write, tmp_path: Path, result: str, message: str
) -> None:
    folder = exported(command, write, tmp_path)
    status, _, err = command("import-weights", folder, write("out", result))
    assert status == 2 and message in err


def test_an_existing_folder_and_an_ambiguous_label_are_errors(command: Command, write: Write, tmp_path: Path) -> None:
    exported(command, write, tmp_path)
    arguments = ("--reference", write("ref", REFERENCE), "--initial-weights", write("s", "[weight]\nL= 1\nNN_x= 1 2\n"))
    assert "File exists" in command("export", write("list", LIST), *arguments, "--output", tmp_path / "tuning")[2]
    torn = write("list", "0 ||| a ||| L= 1 NN_x= 1 2 ||| 0\n")
    status, _, err = command("export", torn, *arguments, "--output", tmp_path / "other")
    assert status == 2 and "'NN_x'" in err and not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["tuning\n;touch evil #", "a $(touch evil) `touch evil`", "'\"\\", "-x", "\x1b[2J"])
def test_the_script_in_a_folder_with_special_characters(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The script runs, and nothing in the name of the folder is executed."""
    monkeypatch.chdir(tmp_path)
    files = (
        write("list", LIST),
        "--reference",
        write("ref", REFERENCE),
        "--initial-weights",
        write("s", "L= 1\nTM= 1 2\n"),
    )
    assert command("export", *files, f"--output={name}")[0] == 0
    script = (tmp_path / name / "tune.sh").read_text()
    assert "\x1b" not in script
    (tmp_path / "moses").mkdir()
    (tmp_path / "moses" / "kbmira").write_text("#!/bin/sh\npwd > here\n")
    (tmp_path / "moses" / "kbmira").chmod(0o755)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    monkeypatch.setenv("MOSES", str(tmp_path / "moses"))
    ran = subprocess.run(["sh", "--", f"{name}/tune.sh"], check=False, capture_output=True)
    assert ran.stderr == b"" and not list(tmp_path.rglob("evil"))
    assert (tmp_path / name / "here").read_text() == f"{tmp_path / name}\n"


def test_tune_reads_exported_files(command: Command, write: Write, tmp_path: Path) -> None:
    """init.opt and init.dense contain the same initial weights."""
    folder = exported(command, write, tmp_path, LIST.replace(" s_x= 1 s_y=a= 2", "").replace(" s_x= 3", ""))
    (folder / "init.opt").write_text("0.5 0.25 -0.25\n0 0 0\n1 1 1\n")
    files = (
        "--extractor-features",
        folder / "features.dat",
        "--extractor-scores",
        folder / "scores.dat",
        "--tuner",
        "expected",
    )
    inis = [command("tune", *files, "--initial-weights", folder / name)[1] for name in ("init.dense", "init.opt")]
    weights = [read_weights(str(write("ini", ini))) for ini in inis]
    np.testing.assert_allclose(weights[0]["TM"], weights[1]["TM"])
    status, _, err = command("tune", *files, "--initial-weights", write("short.opt", "1 2\n"))
    assert status == 2 and "short.opt: expected 3 initial weights, found 2" in err


def test_sparse_weights_without_a_feature_in_the_list_are_kept(command: Command, write: Write, tmp_path: Path) -> None:
    """The Moses tuners do not get them. They are scaled like the dense weights, whose absolute values summed to 1."""
    initial = write("initial", "[weight]\nL= 0.5\nTM= 0.25 -0.25\ns_x= 0.1\ns_other= 3\n")
    arguments = ("--reference", write("ref", REFERENCE), "--initial-weights", initial, "--output", tmp_path / "tuning")
    assert command("export", write("list", LIST), *arguments)[0] == 0
    assert "s_other" not in (tmp_path / "tuning" / "sparse-weights").read_text()
    _, imported, _ = command("import-weights", tmp_path / "tuning", write("out", "F0 1\nF1 2\nF2 -1\n"))
    assert b"s_other= 3\n" in imported


def test_weights_of_a_tuneable_unknown_word_penalty_are_imported(
    command: Command, write: Write, tmp_path: Path
) -> None:
    """Lists have this feature only if the ini declares it as tuneable."""
    nbest = write("list", LIST.replace("||| L=", "||| UnknownWordPenalty0= -100 L="))
    initial = write("initial", "UnknownWordPenalty0= 0.7\nL= 0.5\nTM= 0.25 -0.25\n")
    arguments = ("--reference", write("ref", REFERENCE), "--initial-weights", initial, "--output", tmp_path / "tuning")
    assert command("export", nbest, *arguments)[0] == 0
    result = write("kbmira.out", "F0 1\nF1 1\nF2 1\nF3 -1\n")
    status, imported, err = command("import-weights", tmp_path / "tuning", result)
    assert status == 0, err
    assert b"\nUnknownWordPenalty0= 0.25\nL= 0.25\nTM= 0.25 -0.25\n" in imported


def test_the_weight_of_rest_cannot_be_tuned_by_moses(command: Command, write: Write, tmp_path: Path) -> None:
    nbest = write("list", LIST.replace("||| L=", "||| Rest= -1 L="))
    initial = write("initial", "L= 0.5\nTM= 0.25 -0.25\n")
    arguments = ("--reference", write("ref", REFERENCE), "--initial-weights", initial)
    status, _, err = command("export", nbest, *arguments, "--output", tmp_path / "tuning")
    fixed = "feature 'Rest' has a fixed weight, but Moses' tuners tune all features. Export a list without it"
    assert (status, fixed in err, (tmp_path / "tuning").exists()) == (2, True, False)


def test_weights_tuned_on_files_of_an_unlabelled_list_fit_the_list(command: Command, write: Write) -> None:
    """Moses' extractor names the values `_0`, `_1`, …."""
    features = "FEATURES_TXT_BEGIN_0 0 2 3 _0 _1 _2 \n0 -9 -3 \n0 -1 -3 \nFEATURES_TXT_END_0\n"
    statistics = "SCORES_TXT_BEGIN_0 0 2 9 BLEU \n0 2 0 1 0 0 0 0 6 \n6 6 5 5 4 4 3 3 6 \nSCORES_TXT_END_0\n"
    files = ("--extractor-features", write("f.dat", features), "--extractor-scores", write("s.dat", statistics))
    initial = ("--initial-weights", write("init.opt", "0.5 0 -0.5\n0 0 0\n1 1 1\n"))
    status, ini, err = command("tune", *files, *initial, "--tuner", "kbmira")
    assert status == 0, err
    nbest = write("list", "0 ||| a b ||| 0 -9 -3 ||| 0\n0 ||| the old house is red . ||| 0 -1 -3 ||| 0\n")
    assert command("rerank", nbest, "--weights", write("w", ini))[1].decode() == "the old house is red .\n"
