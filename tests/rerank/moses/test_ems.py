import os
import re
import subprocess
import sys
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path

import pytest

from rerank.commands.ems import MODULE, STEP

Command = Callable[..., tuple[int, bytes, str]]

META = """\
# experiment.meta

[TUNING] single
tune
\tin: input reference
\tout: weight-config
\tdefault-name: tuning/moses.ini

[EVALUATION] multiple
decode
\tin: TUNING:weight-config input
\tout: system-output
\tdefault-name: evaluation/output
remove-markup
        in: system-output
\tout: cleaned-output
\tdefault-name: evaluation/cleaned
\tpass-unless: report-segmentation
#remove-markup
wade
\tin: filtered-dir system-output
\tout: wade-analysis
"""

PARAMETERS = {
    "trainer": "/venv/bin/moses-rerank retune --jobs 2",
    "decoder": "/moses/bin/moses",
    "decoder-settings": "-mbr -threads 8",
    "nbest": "100",
    "input-extension": "de",
    "output-extension": "en",
    "reranking": "/venv/bin/moses-rerank apply",
}


def template(text: str) -> str:
    return re.findall(r"^\ttemplate: (.*)$", text, re.MULTILINE)[0]


def filled_2011(line: str, inputs: list[str], output: str) -> str:
    """Fill in a template like the EMS of 2011, which also replaces IN inside words."""
    line = re.sub(r"([^AHNSW])IN(\d+)", lambda found: found[1] + inputs[int(found[2])], line)
    line = re.sub(r"([^AHNSW])IN", lambda found: found[1] + inputs[0], line)
    return parameters(line.replace("OUT", output))


def filled_2015(line: str, inputs: list[str], output: str) -> str:
    """Fill in a template like the EMS since 2015, which replaces IN only after a space, for ten inputs at most."""
    line = re.sub(r" IN(\d)", lambda found: " " + inputs[int(found[1])], line)
    return parameters(re.sub(r" OUT", f" {output}", line))


def parameters(line: str) -> str:
    return re.sub(r"\$([^\s/\"']+)", lambda found: PARAMETERS[found[1]], line)


@pytest.mark.parametrize("filled", [filled_2011, filled_2015])
def test_templates_are_filled_in_correctly(filled: Callable[[str, list[str], str], str]) -> None:
    assert filled(template(MODULE), ["/w/dev", "/w/ref", "/w/tuned.ini", "/w/corpus"], "/w/reranker.1") == (
        "/venv/bin/moses-rerank retune --jobs 2 /w/dev /w/ref /moses/bin/moses /w/tuned.ini "
        "--working-dir /w/reranker.1.work --corpus /w/corpus --f de --e en --nbest 100 "
        '--decoder-flags="-mbr -threads 8" && ln -sfn /w/reranker.1.work/reranker /w/reranker.1'
    )
    assert filled(template(STEP), ["/w/toy.output.1", "/w/reranker.1", "/w/toy.de"], "/w/toy.reranked.1") == (
        "/venv/bin/moses-rerank apply /w/reranker.1 /w/toy.output.1.best* --source /w/toy.de --output /w/toy.reranked.1"
    )


def test_the_documented_configuration_has_all_parameters() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guide" / "moses.md").read_text(encoding="utf-8")
    sections = ConfigParser(interpolation=None)
    sections.read_string(re.findall(r"^```ini\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0])
    of_general = {"decoder", "input-extension", "output-extension"}
    wanted = set(re.findall(r"\$([^\s/\"']+)", template(MODULE))) - of_general
    assert wanted == set(sections["RERANKING"])
    assert re.findall(r"\$([^\s/\"']+)", template(STEP)) == ["reranking"]
    assert set(sections["EVALUATION"]) == {"reranking", "decoder-settings", "nbest"}


def test_the_steps_are_inserted(command: Command, write: Callable[[str, str], Path]) -> None:
    """All other bytes stay the same, and the last line may lack its newline."""
    meta = write("experiment.meta", META.removesuffix("\n"))
    status, out, err = command("ems", meta)
    assert (status, err) == (0, "")
    expected = META.replace("[EVALUATION]", f"{MODULE}[EVALUATION]").replace(
        "\nremove-markup", f"\n{STEP}remove-markup"
    )
    expected = expected.replace("        in: system-output", "        in: reranked-output").removesuffix("\n")
    assert out.decode() == expected
    assert command("ems", meta, "--output", meta.parent / "new.meta")[0] == 0
    assert (meta.parent / "new.meta").read_text() == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("in: system-output", "in: cleaned", "expected a step remove-markup in [EVALUATION] that reads system-output"),
        ("[EVALUATION]", "[RECASING]", "expected a step remove-markup in [EVALUATION] that reads system-output"),
        ("remove-markup", "markup", "expected a step remove-markup in [EVALUATION] that reads system-output"),
        ("[TUNING] single", "[RERANKING] single", "already has a module [RERANKING]"),
    ],
)
def test_an_unsuitable_meta_file_is_an_error(
    command: Command, write: Callable[[str, str], Path], old: str, new: str, message: str
) -> None:
    meta = write("experiment.meta", META.replace(old, new))
    status, out, err = command("ems", meta, "--output", meta.parent / "new.meta")
    assert (status, out) == (2, b"")
    assert err.startswith(f"moses-rerank ems: {meta}: {message}") and err.count("\n") == 1
    assert not (meta.parent / "new.meta").exists()


@pytest.mark.parametrize(
    "line", ["retune: dev.de: No such file or directory", "import-weights: stopped", "apply: unknown arguments: x"]
)
def test_ems_detects_failed_commands(line: str) -> None:
    """EMS searches stderr for error patterns, independent of the exit status. Progress messages do not match."""
    for step in (MODULE, STEP):
        patterns = re.findall(r"^\terror: (.*)$", step, re.MULTILINE)[0].split(",")
        assert any(re.search(pattern, f"moses-rerank {line}", re.IGNORECASE) for pattern in patterns)
        assert not any(re.search(pattern, "[1/9] train forward", re.IGNORECASE) for pattern in patterns)
        assert any(re.search(pattern, "Traceback (most recent call last):") for pattern in patterns)


CONFIG = """\
[GENERAL]
working-dir = {folder}/ems
input-extension = de
output-extension = en
moses-script-dir = {folder}/scripts
decoder = {folder}/moses
moses-rerank = {folder}/moses-rerank

[TRAINING]
config = {folder}/moses.ini
bin-config = {folder}/moses.ini
binarize-all = /bin/cp
corpus = {folder}/train

[TUNING]
weight-config = {folder}/moses.ini
config-with-reused-weights = {folder}/moses.ini
input = {folder}/dev.de
reference = {folder}/dev.en

[RERANKING]
trainer = "$moses-rerank retune --experiment {folder}/models.toml --device cpu"
nbest = 100
decoder-settings = "-threads 2"

[EVALUATION]
nbest = "100 distinct"
decoder-settings = "-threads 2"
reranking = "$moses-rerank apply --device cpu"
multi-bleu = /bin/cat

[EVALUATION:toy]
input = {folder}/test.de
tokenized-reference = {folder}/test.en

[REPORTING]
"""


@pytest.mark.slow
def test_ems_writes_working_steps(command: Command, folder: Path, decoder: Callable[..., Path]) -> None:
    """The perl program of EMS reads the meta file and writes scripts, which are run here."""
    ems = os.environ.get("MOSES_EMS")
    if not ems:
        pytest.skip("MOSES_EMS does not name Moses' folder scripts/ems")
    decoder()
    program = folder / "moses-rerank"
    root = Path(__file__).parents[3]
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" -m rerank.cli "$@"\n')
    program.chmod(0o755)
    for name in ("ems", "scripts"):
        (folder / name).mkdir()
    (folder / "config").write_text(CONFIG.format(folder=folder))
    assert command("ems", f"{ems}/experiment.meta", "--output", "meta")[0] == 0
    words = ["perl", f"{ems}/experiment.perl", "-no-graph", "-meta", folder / "meta", "-config", folder / "config"]
    result = subprocess.run(words, cwd=folder / "ems", capture_output=True, text=True, check=True)
    assert "ERROR" not in result.stdout + result.stderr
    for step in ("RERANKING_train", "EVALUATION_toy_decode", "EVALUATION_toy_rerank"):
        subprocess.run(["sh", folder / "ems" / "steps" / "0" / f"{step}.0"], capture_output=True, check=True)
    choices = (folder / "ems" / "evaluation" / "toy.reranked.0").read_bytes()
    made = ("apply", "ems/reranking/reranker.0", "test.nbest", "--source", "test.de")
    assert (choices.count(b"\n"), command(*made)[1]) == (40, choices)
    assert "toy.reranked.0" in (folder / "ems" / "steps" / "0" / "EVALUATION_toy_multi-bleu.0").read_text()
