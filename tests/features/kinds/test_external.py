"""Scores of other tools, external programs, and user-defined features."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from features.feature import Sentence
from features.kinds.external import lines_of, read_scores, read_values
from features.request import parse_requests
from features.table import packaged
from moses_io.files.errors import InputError

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

LIST = "0 ||| a b ||| L= 1 ||| 0\n0 ||| c ||| L= 1 ||| 0\n1 ||| d ||| L= 1 ||| 0\n"


@pytest.mark.parametrize(
    ("form", "text", "wanted"),
    [
        ("numbers", "-1.5\n-2\n", [[-1.5], [-2]]),
        ("numbers", "-1.5 3\n-2\t4\n", [[-1.5, 3], [-2, 4]]),
        ("lamtram", "ll=-12.5 unk=2\nll=-3 unk=0\n", [[-12.5, -2], [-3, 0]]),
        ("mantis", "0 ||| x ||| a ||| 1.25\n1 ||| x ||| b ||| 2\n", [[-1.25], [-2]]),
        ("nematus", "0 ||| a ||| LM0= -2 ||| -3 12.5\n0 ||| b ||| LM0= -2 ||| -3 1\n", [[-12.5], [-1]]),
        ("nematus", "0 ||| a ||| LM0= -2 ||| -3 ||| 0-0 1 2\n", [[-1, -2]]),
        (
            "comet",
            "h.txt\tSegment 0\tscore: 0.5\nh.txt\tSegment 1\tscore: -1\tvariance: 0.1\nh.txt\tscore: -0.2500\n",
            [[0.5], [-1]],
        ),
        ("fairseq", "S-1\tx\nH-1\t-0.5\tb\nP-1\t-1 -2\nS-0\tx\nH-0\t-0.25\ta\n", [[-0.25], [-0.5]]),
    ],
)
def test_score_files_of_other_tools_are_read(write: Write, form: str, text: str, wanted: list[list[float]]) -> None:
    name, found = read_scores(str(write("scores", text)))
    assert (name, found.tolist()) == (form, wanted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "scores:1: expected a score format that .* lists, found ''"),
        ("0 ||| a b ||| L= 1 ||| -3\n", "scores:1: expected a score format"),
        ("word\n", "scores:1: expected a score format .* found 'word'"),
        ("9" * 5000 + "\n", "scores:1: expected a score format"),
        (f"H-{'9' * 5000}\t-1\ta\n", "scores:1: expected a score format"),
        ("1\n\n", "scores:2: expected finite values in the format 'numbers', found ''$"),
        ("-1.2\nnan\n", "scores:2: expected finite values in the format 'numbers', found 'nan'$"),
        ("0 ||| a ||| L= -2 ||| -3 12.5 nan\n", "scores:1: expected .* found '0 "),
        (
            "0 ||| a ||| L= -2 ||| -3 1\n0 ||| b ||| L= -2 ||| -3 inf\n",
            "scores:2: expected finite values in .* 'nematus'",
        ),
        ("1 2\n1\n", "scores:2: 1 value, the first line has 2$"),
        ("H-0\t-1\ta\nH-2\t-1\tb\n", "scores of 2 candidates, not numbered from 0 without gaps"),
        ("H-0\t-1\ta\nH-0\t-1\tb\n", "scores:2: candidate 0 has a second score$"),
    ],
)
def test_invalid_score_files_are_errors(write: Write, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_scores(str(write("scores", text)))


def score(command: Command, write: Write, feature: str) -> tuple[int, bytes, str]:
    return command("score", write("list", LIST), "--source", write("src", "x y\nz\n"), "--feature", feature)


def test_a_score_file_needs_one_line_per_candidate(command: Command, write: Write) -> None:
    scores = write("scores", "1 2\n3 4\n5 6\n")
    status, out, _ = score(command, write, f"COMET=scores:{scores}")
    assert status == 0
    assert [line.split(" ||| ")[2] for line in out.decode().split("\n")[:-1]] == [
        "L= 1 COMET= 1 2", "L= 1 COMET= 3 4", "L= 1 COMET= 5 6",
    ]  # fmt: skip
    for lines, message in (("1\n2\n", "scores of 2 candidates, the list has more"), ("1\n" * 4, "the list has 3")):
        status, out, err = score(command, write, f"COMET=scores:{write('scores', lines)}")
        assert status == 2 and message in err


def test_a_program_scores_candidates(command: Command, write: Write) -> None:
    program = write(
        "count.py", "import sys\nfor line in sys.stdin:\n    s, t = line.split('\\t')\n    print(len(s), len(t))\n"
    )
    status, out, _ = score(command, write, f"Mine=command:{sys.executable} {program}")
    assert status == 0 and b"Mine= 3 4" in out and b"Mine= 1 2" in out
    (request,) = parse_requests([f"command:{sys.executable} {program} -x"])
    assert request.code == [sys.executable, str(program)]
    (long,) = parse_requests([f"command:awk '{'x' * 300}'"])
    assert long.code == []
    with pytest.raises(InputError, match="No closing quotation"):
        _ = parse_requests(["command:awk '{print 1}"])[0].code


MODULE = '''
"""A feature of somebody else."""


class Letters:
    def __init__(self, argument, resources):
        self.letter, self.signature = argument or "a", "letters"

    def __call__(self, sentences):
        import numpy as np

        return np.array([[" ".join(text).count(self.letter)] for each in sentences for text in each.hypotheses], float)
'''


def test_a_feature_class_in_a_python_file(command: Command, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write("letters_here.py", MODULE).parent
    monkeypatch.chdir(folder)
    status, out, err = score(command, write, "letters_here:Letters:b")
    assert status == 0, err
    assert b"L= 1 Letters0= 1" in out
    status, out, _ = score(command, write, "As=letters_here:Letters")
    assert b"L= 1 As= 1" in out
    err = score(command, write, "X=letters_here:Nothing")[2]
    assert f"unknown feature 'letters_here:Nothing': {folder}/letters_here.py has no class 'Nothing'" in err


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ("[['1'], ['2'], ['3']]", r"\(3, 1\) of <U1"),
        ("[[1], [None], [3]]", r"\(3, 1\) of object"),
        ("[1, 2, 3]", r"\(3,\) of int64"),
        ("[[1], [2]]", r"\(2, 1\) of int64"),
    ],
)
def test_wrong_values_of_a_feature_class_are_errors(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch, values: str, found: str
) -> None:
    returned = f"np.array({values})"
    text = re.sub(r"np\.array\(.*\)", lambda _: returned, MODULE)
    monkeypatch.chdir(write("letters_wrong.py", text).parent)
    monkeypatch.delitem(sys.modules, "letters_wrong", raising=False)
    status, _, err = score(command, write, "letters_wrong:Letters")
    expected = r"expected an array of \(3, values\) numbers, one row per candidate, found "
    assert status == 2 and re.search(f"feature 'Letters0': {expected}{found}$", err), err


def test_a_program_gets_a_space_for_a_tab_in_a_candidate() -> None:
    assert lines_of(Sentence(0, ("x",), (("a\tb", "c"), ("d",)))) == "x\ta b c\nx\td\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class Letters(:\n", "broken.py:1: invalid syntax"),
        (
            "import letters_beside\n",
            "broken.py: No module named 'letters_beside'. A feature module can import",
        ),
        ("from numpy import nothing_of_it\n", "cannot import name 'nothing_of_it'"),
        ("Letters = 3\n", "broken.py has no class 'Letters'"),
    ],
)
def test_a_python_file_without_a_usable_class_is_an_error(
    command: Command, write: Write, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(write("letters_beside.py", MODULE).parent)
    write("broken.py", text)
    status, _, err = score(command, write, "broken:Letters")
    assert (status, message in err, err.count("\n")) == (2, True, 1), err


HOSTILE = "import pathlib\npathlib.Path(__file__).with_suffix('.ran').touch()\nraise ValueError('this was not named')\n"


def test_only_the_named_module_of_the_working_folder_is_run(write: Write, tmp_path: Path) -> None:
    """Files in the working folder have the names of imported modules.

    Tested for the installed command and for its worker processes.
    """
    python = ("socket", "pickle", "signal") if sys.version_info >= (3, 11) else ()  # -P is new in Python 3.11
    for name in ("redis", "wcwidth", "numpy", "cffi", *python):
        write(f"{name}.py", HOSTILE)
    (tmp_path / "dill").mkdir()
    (tmp_path / "bin").mkdir()
    write("letters.py", MODULE)
    write("list", LIST)
    write("src", "x y\nz\n")
    script = write(
        "bin/moses-rerank", "import sys\nfrom rerank.cli import main\nif __name__ == '__main__': sys.exit(main())"
    )
    jobs = write(
        "bin/jobs",
        "from functools import partial\nfrom features.feature import Resources\n"
        "from features.request import parse_requests\nfrom rerank.lists.append import write_features\n"
        "from rerank.experiment.workers import do_all\nif __name__ == '__main__':\n"
        "    requests = parse_requests(['letters:Letters'])\n"
        "    score = partial(write_features, 'list', 'src', requests, 'out', Resources())\n    do_all({'a': score}, 2)",
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    score = [script, "score", "list", "--source", "src", "--feature", "letters:Letters", "--feature", "consensus:bleu"]
    for arguments in (score, [jobs]):
        run = [sys.executable, *arguments]
        ran = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert list(tmp_path.glob("*.ran")) == []
    assert (tmp_path / "out").read_text() == "Letters0= 1\nLetters0= 0\nLetters0= 0\n"


READS_A_MODEL = """
from features.feature import ModelFeature, Need


class Twice(ModelFeature):
    def __init__(self, argument, readers):
        self.signature = "twice|" + readers[0].signature

    @classmethod
    def needs(cls, argument):
        return [Need((argument,), ("logprob",))]

    def __call__(self, sentences, readings):
        return 2 * readings[0].values["logprob"][:, None]
"""


def test_a_feature_class_reads_the_values_of_a_model(
    command: Command, write: Write, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write("reads_a_model.py", READS_A_MODEL).parent)
    arguments = ["--source", write("src", "x y\nz\n"), "--feature", f"A=neural:{models['forward']}"]
    mine = f"B=reads_a_model:Twice:{models['forward']}"
    status, out, err = command("score", write("list", LIST), *arguments, "--feature", mine, "--verify", 3)
    assert status == 0, err
    for line in out.decode().splitlines():
        once, twice = re.findall("(?:A|B)= ([-0-9.]+)", line)
        assert float(twice) == pytest.approx(2 * float(once))
    assert "B = twice|preset:cohn-align|" in err and "B: 3 candidates scored one by one" in err


def test_an_installed_package_adds_features(tmp_path: Path) -> None:
    """A package installed by pip is found by its entry point. It cannot replace a built-in feature."""
    wheel, site = tmp_path / "letters-1.0-py3-none-any.whl", tmp_path / "site"
    info = "letters-1.0.dist-info"
    files = {
        "letters_of_a_package.py": MODULE,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: letters\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[moses_rerank.features]\nmy-letters = letters_of_a_package:Letters\n"
        "length = letters_of_a_package:Letters\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": "".join(f"{name},,\n" for name in files)}.items():
            archive.writestr(name, text)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(wheel)], check=True)
    (tmp_path / "list").write_text(LIST)
    (tmp_path / "src").write_text("x\nz\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(Path(__file__).parents[3])])}
    moses_rerank = [sys.executable, "-m", "rerank.cli"]
    for arguments, wanted in (
        (
            ["score", "list", "--source", "src", "--feature", "my-letters", "--feature", "B=my-letters:b"],
            b"MyLetters0= 1 B= 1",
        ),
        (["features"], b"my-letters[:ARG]"),
        (["features"], b"number of words, and with a corpus"),  # a package cannot replace a built-in kind
    ):
        ran = subprocess.run(
            [*moses_rerank, *arguments], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        assert ran.returncode == 0, ran.stderr.decode()
        assert wanted in ran.stdout
    assert "my-letters" not in packaged()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1", "2", "3"], "^expected 2 lines, one per candidate, found 3$"),
        (["1"], "^expected 2 lines, one per candidate, found 1$"),
        (["1 2", "3"], "^line 2: 1 value, the first line has 2$"),
    ],
)
def test_a_wrong_output_of_a_program_is_an_error(lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_values(lines, 2)
