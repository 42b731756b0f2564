"""The documentation agrees with the program.

Run unchanged, in a folder with a small part of the sample: the notebook of docs/guide/python.md, the modules of
features and terms, and (marked slow) the commands of the README and of the quickstart in bash, with small training
settings and a stub for Moses. All TOML blocks are read by the program. The larger example of experiment files is also
run, with small models. All other commands, and the examples of `--help`, are parsed by the real parser (if they have an
ellipsis, with the required arguments added). For scripts, only the names are checked.
"""

import ast
import gzip
import importlib
import inspect
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from features.models import settings as model_settings
from features.models import tables
from features.models.network import terms
from features.models.settings import CHOICES, Architecture, Training
from features.table import ENTRY_POINTS
from rerank import library
from rerank.cli import COMMANDS, main, make_parser
from rerank.commands import arguments
from rerank.experiment import toml
from rerank.experiment.file import KEYS, parse_experiment
from rerank.experiment.studies.file import read_study
from rerank.experiment.toml import parse_toml, write_experiment
from rerank.sample import FOLDER as SAMPLE
from rerank.tuners import table
from rerank.tuners.table import TUNERS, Tuning
from rerank.tuning.tune import FoldSettings, setting_names

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGE = DOCS / "guide" / "python.md"
SETTINGS = "features/models/settings.py"
FOLDERS = ("moses_io", "features", "rerank", "tests", "scripts")
_BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
SMALL = {"embedding_size": 16, "hidden_size": 16, "attention_size": 16, "updates": 5}
"""Settings of a training that takes a second."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its page below the root, line, language (empty for shell and output) and text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[list[str]]:
        """Simple commands that call `moses-rerank` or a script, as lists of words without redirections."""
        if self.language or not re.search(r"^(.* )?(moses-rerank|scripts/[\w/-]+) ", self.text, re.MULTILINE):
            return []
        calls = simple_commands(self.text)
        return [words for words in calls if words[0] == "moses-rerank" or words[0].startswith("scripts/")]


def simple_commands(text: str) -> list[list[str]]:
    commands: list[list[str]] = []
    for line in text.replace("\\\n", " ").split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
        lexer.whitespace_split = True
        redirected = False
        commands.append([])
        for word in lexer:
            if set(word) <= set("|;&") or word == "do":
                commands.append([])
            elif not redirected and not set(word) <= set("<>"):
                commands[-1].append(word)
            redirected = set(word) <= set("<>")
    return [words for words in commands if words]


def read_blocks() -> list[Block]:
    blocks = []
    for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))):
        for token in MarkdownIt().parse(path.read_text(encoding="utf-8")):
            if token.type == "fence" and token.map:
                name = path.relative_to(ROOT).as_posix()
                blocks.append(Block(name, token.map[0] + 1, token.info.strip(), token.content))
    return blocks


BLOCKS = read_blocks()
SHELL = [block for block in BLOCKS if block.commands]
TOML = [block for block in BLOCKS if block.language == "toml"]
MODULES = [block for block in BLOCKS if block.language == "python" and re.match(r"# \w+\.py\n", block.text)]


@pytest.fixture
def examples(small: Callable[..., Path], sample: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files named in the documentation, in the working directory."""
    folder = small(pairs=200, sentences=20, candidates=10)
    for name in ("dev", "test"):
        lines = (folder / f"{name}.nbest").read_bytes().splitlines(keepends=True)
        (folder / f"{name}.nbest.gz").write_bytes(gzip.compress(b"".join(lines)))
        (folder / f"{name}.comet").write_text("".join(f"{row % 7}\n" for row in range(len(lines))))
        (folder / f"{name}.nbest").unlink()
    (folder / "data").mkdir()
    for path in [path for path in folder.iterdir() if path.is_file() and path.suffix != ".comet"]:
        shutil.copy(path, folder / "data")
    for model in ("lm.5gram.arpa.gz", "lm.arpa.gz"):
        shutil.copy(sample / "lm.5gram.arpa.gz", folder / model)
    for suffix in ("de", "nbest.gz"):
        shutil.copy(folder / f"test.{suffix}", folder / f"news.{suffix}")
    monkeypatch.chdir(folder)
    return folder


def test_the_notebook_prints_the_shown_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`…` matches any text."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 4
    for code, shown in blocks:
        exec(compile(code, str(PAGE), "exec"), names)
        out, err = capfd.readouterr()
        assert err == ""
        assert re.fullmatch(re.escape(shown).replace("…", ".*"), out), out


def test_each_picture_has_its_command() -> None:
    """All pictures are small, and no file is unused."""
    page = (DOCS / "guide" / "plots.md").read_text(encoding="utf-8")
    shown = re.findall(r"^!\[.+\]\(\.\./(.+)\)$", page, re.MULTILINE)
    assert shown == re.findall(r"^(?!!).*--output docs/(\S+)", page, re.MULTILINE)
    assert {DOCS / name for name in shown} == set((DOCS / "plots").iterdir())
    assert all(path.stat().st_size < 150_000 for path in (DOCS / "plots").iterdir())


def filled(words: list[str]) -> list[str]:
    """Remove ellipses, except as values of options, and add missing required options."""
    if "…" not in words:
        return words
    commands = make_parser()._subparsers
    assert commands
    actions = commands._group_actions[0].choices[words[1]]._actions  # type: ignore[call-overload, index]
    with_value = {flag for action in actions if action.nargs is None for flag in action.option_strings}
    lacking = [action.option_strings[0] for action in actions if action.required and action.option_strings]
    kept = [word for before, word in itertools.pairwise(words) if word != "…" or before in with_value]
    return [words[0], *kept, *(part for flag in lacking if flag not in words for part in (flag, "x"))]


def parse(words: list[str]) -> None:
    arguments = [re.sub(r"\$\w+", "1", word) for word in filled(words)[1:]]
    try:
        make_parser().parse_args(arguments)
    except SystemExit:
        pytest.fail(f"not a command: {shlex.join(words)}")


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_commands_in_the_docs_are_valid(block: Block) -> None:
    for words in block.commands:
        if words[0] == "moses-rerank":
            parse(words)
        else:
            assert (ROOT / words[0]).is_file()


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_of_help_are_valid(name: str) -> None:
    examples = importlib.import_module(f"rerank.commands.{name.replace('-', '_')}").EXAMPLES
    block = Block(name, 0, "", "".join(re.findall(r"^  .*\n|^  .*$", examples, re.MULTILINE)))
    assert bool(block.commands) == bool(examples)
    for words in block.commands:
        parse(words)


def experiment_of(block: Block) -> dict[str, Any]:
    """Add the files of the examples to a block that has only some tables."""
    texts = {"source": "dev.de", "reference": "dev.en", "nbest": "dev.nbest.gz"}
    train = {"source": "train.de", "target": "train.en"}
    base = {"output": "work", "initial_weights": "moses.ini", "train": train, "dev": texts}
    return base | parse_toml(block.text.encode(), str(block))


@pytest.mark.parametrize("block", TOML, ids=str)
def test_toml_in_the_docs_is_valid(block: Block, tmp_path: Path) -> None:
    values = parse_toml(block.text.encode(), str(block))
    if set(values) <= set(KEYS):
        parse_experiment(write_experiment(experiment_of(block), {}).encode(), str(tmp_path / "experiment.toml"))
    elif "study" in values:
        names = {
            "output": "work",
            "initial_weights": "moses.ini",
            "train.source": "train.de",
            "train.target": "train.en",
        }
        names |= {"dev.source": "dev.de", "dev.reference": "dev.en", "dev.nbest": "dev.nbest.gz"}
        lines = [f'{key} = "{SAMPLE / name}"\n' for key, name in names.items()]
        (tmp_path / "study.toml").write_text("".join(lines) + block.text)
        assert list(read_study(str(tmp_path / "study.toml")).systems) == list(values["study"]["systems"])
    else:  # a part of a pyproject.toml
        assert list(values["project"].pop("entry-points")) == [ENTRY_POINTS]
        assert values == {"project": {}}


@pytest.mark.parametrize("block", MODULES, ids=str)
def test_features_in_the_docs_run(block: Block, examples: Path, models: dict[str, Path]) -> None:
    name = block.text.split()[1]
    (examples / name).write_text(block.text)
    classes = [node for node in ast.parse(block.text).body if isinstance(node, ast.ClassDef)]
    for node in classes:
        argument = f":{models['forward']}" if node.bases else ""
        feature = f"Mine={name.removesuffix('.py')}:{node.name}{argument}"
        words = ["score", "dev.nbest.gz", "--source", "dev.de", "--feature", feature, "--output", "dev.scored"]
        assert main(words) == 0
        assert (examples / "dev.scored").read_bytes().count(b" Mine= ") == 200


def test_the_attention_term_in_the_docs_can_be_trained(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = [block for block in BLOCKS if block.page == "docs/reference/models.md" and block.language == "python"]
    exec(compile(block.text, str(block), "exec"), terms.__dict__)
    monkeypatch.setitem(tables.TABLES["attention_terms"], "before-last", "features.models.network.terms:BeforeLast")
    monkeypatch.setitem(CHOICES, "attention_terms", tuple(tables.TABLES["attention_terms"]))
    settings = [f"{key}={value}" for key, value in SMALL.items()]
    corpus = ["--source", "train.de", "--target", "train.en", "--dev-source", "dev.de", "--dev-target", "dev.en"]
    words = [
        "train",
        "--preset",
        "rnnsearch",
        *corpus,
        "--set",
        "attention_terms=before-last",
        *settings,
        "--output",
        "model",
    ]
    assert main(words) == 0


def test_all_python_in_the_docs_is_tested() -> None:
    others = [block for block in BLOCKS if block.language == "python" and block not in MODULES]
    assert {block.page for block in others} == {"docs/guide/python.md", "docs/reference/models.md"}


def test_modules_named_in_the_architecture_exist() -> None:
    modules = {f"/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    named = set(re.findall(r"`([\w/]+\.py)`", (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")))
    assert not {name for name in named if not any(module.endswith(f"/{name}") for module in modules)}


def test_settings_of_models_are_in_the_docs() -> None:
    page, source = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/reference/models.md", SETTINGS))
    comments = dict(re.findall(r"^    (\w+): .*?  # (.*)$", source, re.MULTILINE))
    for field in (*fields(Architecture), *fields(Training)):
        default = "none" if field.default == () else str(field.default)
        default = default.lower() if isinstance(field.default, bool) else default
        assert f"| `{field.name}` | {default} | {comments[field.name]} |" in page


def test_settings_of_tuners_and_keys_of_experiments_are_in_the_docs() -> None:
    pages = (DOCS / "reference" / name for name in ("tuning.md", "experiment.md"))
    tuning, experiment = (page.read_text(encoding="utf-8") for page in pages)
    for kind in TUNERS.values():
        assert [name for name in setting_names(kind) if f"`{name}`" not in tuning] == []
    tables = [field.name for field in (*fields(Tuning), *fields(FoldSettings)) if field.name != "settings"]
    assert [key for key in KEYS if not re.search(rf"`\[?{key}\]?`|`\[{key}\] ", experiment)] == []
    assert [key for key in tables if f"`{key}`" not in experiment] == []


def test_the_upgrade_page_has_all_renames() -> None:
    page = (DOCS / "reference" / "upgrade.md").read_text(encoding="utf-8")
    tables_of_options, _, python = page.partition("### Python")
    rows = set(re.findall(r"^\| (?:`[a-z]+` \| )?`([^`]+)` \| `([^`]+)` \|", tables_of_options, re.MULTILINE))
    by_command = [pair for renamed in arguments.RENAMED.values() for pair in renamed.items()]
    assert rows == {*model_settings.RENAMED.items(), *toml.RENAMED.items(), *table.RENAMED.items(), *by_command}
    renamed_in_python = re.findall(r"^\| `(train|tune)` \| `(\w+)` \| `(\w+)` \|", python, re.MULTILINE)
    assert len(renamed_in_python) == 6
    for function, old, new in renamed_in_python:
        names = inspect.signature(getattr(library, function)).parameters
        assert new in names and old not in names


def test_messages_of_troubleshooting_are_in_the_code() -> None:
    """Messages are in the first columns under `message` and `symptom`, and after `warns:`. `…` matches values."""
    code = "".join(path.read_text(encoding="utf-8") for folder in FOLDERS[:3] for path in (ROOT / folder).rglob("*.py"))
    page = (DOCS / "guide" / "troubleshooting.md").read_text(encoding="utf-8")
    tables = "".join(re.findall(r"^\| (?:message|symptom) \|.*\n((?:\|.*\n)+)", page, re.MULTILINE))
    quoted = re.findall(r"^\| (?:warning )?`([^`]+)`", tables, re.MULTILINE) + re.findall(r"warns: `([^`]+)`", page)
    assert len(quoted) > 20
    parts = [part.strip() for text in quoted for part in re.split(r"…|[.;] ", text)]
    assert [part for part in parts if part not in code] == []


def test_commands_and_their_arguments_are_in_the_docs() -> None:
    page = subprocess.run([sys.executable, ROOT / "scripts" / "commands"], check=True, capture_output=True, text=True)
    shown = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    assert page.stdout == shown, "scripts/commands > docs/reference/commands.md"


@pytest.mark.slow
def test_the_larger_example_of_experiment_files_runs(examples: Path) -> None:
    blocks = [block for block in TOML if block.page == "docs/guide/experiment.md"]
    block = max(blocks, key=lambda block: len(block.text))
    values = experiment_of(block)
    for settings in values["models"].values():
        settings.update(SMALL)
    values["tuning"]["tuner"] = "kbmira"  # with ten features, the mean of tuners takes ten times as long
    (examples / "experiment.toml").write_text(write_experiment(values, {}))
    assert main(["run", "experiment.toml", "--jobs", "1"]) == 0
    keys = (DOCS / "reference" / "experiment.md").read_text(encoding="utf-8").partition("## JSON output")[2]
    for name in ("report", "tuning"):
        found = json.loads((examples / "work" / f"{name}.json").read_text(encoding="utf-8"))
        assert [key for key in found if f"`{key}`" not in keys] == []
    assert {"report.txt", "report.html", "weights.ini", "test.reranked", "reranker"} <= {
        path.name for path in (examples / "work").iterdir()
    }


SMALL_RERANK = f"""\
#!{sys.executable}
import sys
from rerank.cli import main
from rerank.experiment import recipe
recipe.MODELS = ("left-to-right", "right-to-left")
recipe.SMALL_EPOCHS, recipe.MIN_UPDATES, recipe.SMALL = 1, 100, {SMALL | {"batch_size": 16}}
more = {{"train": {["--set", *(f"{key}={value}" for key, value in SMALL.items())]}, "run": ["--jobs", "1"]}}
sys.exit(main(sys.argv[1:] + more.get(sys.argv[1], [])))
"""
MOSES = "#!/bin/sh\nexec gzip -dc news.nbest.gz\n"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/guide/quickstart.md"])
def test_commands_of_readme_and_quickstart_run_in_order(examples: Path, page: str) -> None:
    """They are run by bash."""
    bin_folder = examples / "bin"
    bin_folder.mkdir()
    for name, script in (("moses-rerank", SMALL_RERANK), ("moses", MOSES)):
        (bin_folder / name).write_text(script)
        (bin_folder / name).chmod(0o755)
    for block in MODULES:
        (examples / block.text.split()[1]).write_text(block.text)
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    complete = [block for block in SHELL if block.page == page and "moses-rerank" in block.text]
    for block in [block for block in complete if "…" not in re.sub("#.*", "", block.text)]:
        shell = ["bash", "-euo", "pipefail", "-c", block.text]
        outcome = subprocess.run(shell, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert outcome.returncode == 0, f"{block}: {outcome.stderr}"
    assert (examples / "news.out").read_bytes().count(b"\n") == 20
