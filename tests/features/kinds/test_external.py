"""Scores of other tools, programs, and features of other people."""

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from features.feature import Resources, Sentence
from features.feature_set import FeatureSet
from features.kinds.huggingface import HuggingFace
from features.kinds.score_files import read_scores
from features.request import packaged, parse_requests
from moses_io.errors import InputError

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
            "h.txt\tSegment 0\tscore: 0.5\nh.txt\tSegment 1\tscore: -1\nh.txt\tscore: 0.2 system score\n",
            [[0.5], [-1]],
        ),
        ("fairseq", "S-1\tx\nH-1\t-0.5\tb\nP-1\t-1 -2\nS-0\tx\nH-0\t-0.25\ta\n", [[-0.25], [-0.5]]),
    ],
)
def test_outputs_of_other_tools(write: Write, form: str, text: str, wanted: list[list[float]]) -> None:
    name, found = read_scores(str(write("scores", text)))
    assert (name, found.tolist()) == (form, wanted)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "scores:1: expected scores as of comet, .*, fairseq; found ''"),
        ("0 ||| a b ||| L= 1 ||| -3\n", "scores:1: expected scores as of"),
        ("word\n", "scores:1: expected scores as of .* found 'word'"),
        ("9" * 5000 + "\n", "scores:1: expected scores as of"),
        (f"H-{'9' * 5000}\t-1\ta\n", "scores:1: expected scores as of"),
        ("1\n\n", "scores:2: not like the first line"),
        ("1 2\n1\n", "scores:2: not like the first line"),
        ("H-0\t-1\ta\nH-2\t-1\tb\n", "scores of 2 candidates, not numbered from 0 without gaps"),
        ("H-0\t-1\ta\nH-0\t-1\tb\n", "scores:2: a second score of this candidate"),
    ],
)
def test_outputs_that_cannot_be_read(write: Write, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_scores(str(write("scores", text)))


def score(command: Command, write: Write, feature: str) -> tuple[int, bytes, str]:
    return command("score", write("list", LIST), "--source", write("src", "x y\nz\n"), "--feature", feature)


def test_a_file_has_a_line_a_candidate(command: Command, write: Write) -> None:
    scores = write("scores", "1 2\n3 4\n5 6\n")
    status, out, _ = score(command, write, f"COMET=scores:{scores}")
    assert status == 0
    assert [line.split(" ||| ")[2] for line in out.decode().split("\n")[:-1]] == [
        "L= 1 COMET= 1 2", "L= 1 COMET= 3 4", "L= 1 COMET= 5 6",
    ]  # fmt: skip
    for lines, message in (("1\n2\n", "scores of 2 candidates, the list has more"), ("1\n" * 4, "the list has 3")):
        status, out, err = score(command, write, f"COMET=scores:{write('scores', lines)}")
        assert status == 2 and message in err


def test_a_program_is_asked(command: Command, write: Write) -> None:
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
    for text, message in (("exit 3", "exit status 3"), ("echo 1", "1 lines of numbers for 3"), ("echo a", "'a'")):
        status, _, err = score(command, write, f"Mine=command:{text}")
        assert status == 2 and message in err


MODULE = '''
"""A feature of somebody else."""


class Letters:
    def __init__(self, argument, resources):
        self.letter, self.signature = argument or "a", "letters"

    def __call__(self, sentences):
        import numpy as np

        return np.array([[" ".join(text).count(self.letter)] for each in sentences for text in each.hypotheses], float)
'''


def test_a_class_in_a_file(command: Command, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write("letters_here.py", MODULE).parent
    monkeypatch.chdir(folder)
    status, out, err = score(command, write, "letters_here:Letters:b")
    assert status == 0, err
    assert b"L= 1 Letters0= 1" in out
    status, out, _ = score(command, write, "As=letters_here:Letters")
    assert b"L= 1 As= 1" in out
    (folder / "letters_here.py").write_text("")
    assert "unknown feature 'letters_here:Nothing'" in score(command, write, "X=letters_here:Nothing")[2]


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


def test_a_class_that_looks_at_what_a_model_says(
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


def test_a_package_brings_features(tmp_path: Path) -> None:
    """A second package, installed by pip, is found by the name of its entry point."""
    wheel, site = tmp_path / "letters-1.0-py3-none-any.whl", tmp_path / "site"
    info = "letters-1.0.dist-info"
    files = {
        "letters_of_a_package.py": MODULE,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: letters\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[moses_rerank.features]\nletters = letters_of_a_package:Letters\n",
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
        (["score", "list", "--source", "src", "--feature", "letters", "--feature", "B=letters:b"], b"Letters0= 1 B= 1"),
        (["features"], b"letters[:ARG]"),
    ):
        ran = subprocess.run(
            [*moses_rerank, *arguments], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        assert ran.returncode == 0, ran.stderr.decode()
        assert wanted in ran.stdout
    assert "letters" not in packaged()


def test_hugging_face_sums_over_the_pieces(transformer: Path) -> None:
    import torch
    from transformers import AutoModelForSeq2SeqLM

    feature = HuggingFace(str(transformer), Resources("cpu"))
    given = [Sentence(0, ("die", "Zeitung"), (("the", "newspaper"), ("the",), ("the", "newspaper")))]
    values = feature(given)
    assert values[0] == values[2] and values.shape == (3, 1)
    known = feature._scorer._tokenizer.get_vocab()
    source = torch.tensor([[known[word] for word in ("die", "Zeitung", "</s>")]])
    target = [known[word] for word in ("the", "newspaper", "</s>")]
    model = AutoModelForSeq2SeqLM.from_pretrained(transformer).eval()
    with torch.no_grad():
        logits = model(input_ids=source, decoder_input_ids=torch.tensor([[known["</s>"], *target[:-1]]])).logits[0]
    wanted = sum(float(row.log_softmax(-1)[word]) for row, word in zip(logits, target, strict=True))
    np.testing.assert_allclose(values[0, 0], wanted, rtol=1e-5)


def test_without_transformers_only_its_feature_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match="feature 'hf' needs transformers"):
        FeatureSet(parse_requests(["hf:x"]), Resources("cpu"))
