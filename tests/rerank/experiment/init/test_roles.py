import gzip
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles
from rerank.experiment.entries import NbestFiles
from rerank.experiment.init.kinds import detect_kinds, files_in
from rerank.experiment.init.matching import SAMPLE_SIZE
from rerank.experiment.init.roles import Roles, find_roles

Files = dict[str, bytes]


@pytest.fixture
def roles_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, bytes]], Roles]:
    """Return a function that writes files into the working directory and infers their roles."""
    monkeypatch.chdir(tmp_path)

    def find(files: Mapping[str, bytes]) -> Roles:
        for name, content in files.items():
            Path(name).write_bytes(content)
        return find_roles(detect_kinds(files_in(["."])))

    return find


RolesOf = Callable[[Mapping[str, bytes]], Roles]

DEV = NbestFiles(source="dev.de", reference=("dev.en",), nbest="dev.nbest")
TEST = NbestFiles(source="test.de", reference=("test.en",), nbest="test.nbest")
TRAIN = ParallelFiles(source="train.de", target="train.en")


def shifted(nbest: bytes, by: int) -> bytes:
    """Return an n-best list with `by` added to its sentence ids."""
    lines = [line.split(b" ", 1) for line in nbest.splitlines(True)]
    return b"".join(b"%d %s" % (int(identifier) + by, rest) for identifier, rest in lines)


def untokenized(text: bytes) -> bytes:
    """Attach punctuation to the preceding word."""
    return re.sub(rb" ([.,?!])", rb"\1", text)


def marked(text: bytes, mark: bytes) -> bytes:
    """Replace the first word of each line, so that lengths do not change."""
    return b"".join(b" ".join([mark, *line.split()[1:]]) + b"\n" for line in text.splitlines())


def test_roles_of_the_sample_files(sample: Path) -> None:
    roles = find_roles(detect_kinds(files_in([str(sample)])))
    path = {name: str(sample / name) for name in ("dev", "test", "train")}
    sets = {
        name: NbestFiles(source=f"{path[name]}.de", reference=(f"{path[name]}.en",), nbest=f"{path[name]}.nbest.gz")
        for name in ("dev", "test")
    }
    assert roles.missing == []
    assert {"dev": roles.dev, **roles.tests} == sets
    assert roles.train == ParallelFiles(source=f"{path['train']}.de", target=f"{path['train']}.en")
    assert (roles.initial_weights, roles.ngrams) == (str(sample / "moses.ini"), [str(sample / "lm.5gram.arpa.gz")])
    messages = dict(line.removeprefix(f"{sample}/").split(": ", 1) for line in roles.lines())
    assert messages["dev.nbest.gz"] == "list of dev (n-best list, 400 sentences)"
    assert messages["train.de"] == "source of the training corpus (text, 6,000 lines)"
    assert messages["lm.5gram.arpa.gz"] == "for a feature (n-gram model)"
    assert messages["experiment.toml"].startswith("not used (text, ")


@pytest.mark.parametrize("seed", range(5))
def test_file_names_and_their_order_do_not_matter(roles_of: RolesOf, files: Files, seed: int) -> None:
    """Only `dev` in a name matters. Source and target are never swapped."""
    numbers = random.Random(seed).sample(range(100), len(files))
    names = {name: f"{number:02}.gz" for name, number in zip(files, numbers, strict=True)}
    names["dev.nbest"] += ".dev"
    roles = roles_of({names[name]: gzip.compress(content, 1) for name, content in files.items()})
    sets = {
        name: NbestFiles(source=names[f"{name}.de"], reference=(names[f"{name}.en"],), nbest=names[f"{name}.nbest"])
        for name in ("dev", "test")
    }
    assert {"dev": roles.dev, **roles.tests} == sets
    assert roles.train == ParallelFiles(source=names["train.de"], target=names["train.en"])
    assert (roles.initial_weights, roles.ngrams) == (names["moses.ini"], [names["lm.arpa"]])


def test_reverse_translation_direction(roles_of: RolesOf, files: Files) -> None:
    """The candidates are in the source language, so German is the target language."""
    roles = roles_of(
        files
        | {
            f"{name}.nbest": b"".join(
                b"%d ||| %s ||| LM0= 1 ||| 0\n" % row
                for row in enumerate(marked(files[f"{name}.de"], b"doch").splitlines())
            )
            for name in ("dev", "test")
        }
    )
    assert roles.dev == NbestFiles(source="dev.en", reference=("dev.de",), nbest="dev.nbest")
    assert roles.train == ParallelFiles(source="train.en", target="train.de")
    assert roles.ngrams == []
    assert "lm.arpa: not used (n-gram model; of the source language)" in roles.lines()


def test_a_model_with_some_words_of_the_target_language_is_not_used(
    roles_of: RolesOf, files: Files, arpa: Callable[..., bytes]
) -> None:
    others = b"".join(b"~%d " % number for number in range(SAMPLE_SIZE))
    wide = arpa(files["train.de"], foreign=others + files["train.en"])
    assert roles_of(files | {"wide": wide}).ngrams == ["lm.arpa"]


def test_the_only_list_with_references_is_dev(roles_of: RolesOf, files: Files) -> None:
    names = {"dev.nbest": "a", "test.nbest": "b"}
    roles = roles_of({names.get(name, name): content for name, content in files.items() if name != "test.en"})
    assert (roles.dev, roles.tests) == (
        NbestFiles(source="dev.de", reference=("dev.en",), nbest="a"),
        {"test": NbestFiles(source="test.de", reference=(), nbest="b")},
    )


def test_the_list_that_is_not_named_test_is_dev(roles_of: RolesOf, files: Files) -> None:
    roles = roles_of({"a" if name == "dev.nbest" else name: content for name, content in files.items()})
    assert roles.dev is not None and (roles.dev.nbest, roles.tests) == ("a", {"test": TEST})


@pytest.mark.parametrize(
    ("name", "is_dev"),
    [
        ("newsdev2016.gz", True),
        ("a_val.nbest", True),
        ("run7.mert", True),
        ("dev.eval", True),
        ("DEV", True),
        ("devtest", False),
        ("latest.dev.gz", True),
    ],
)
def test_file_names_that_mark_the_dev_list(roles_of: RolesOf, files: Files, name: str, is_dev: bool) -> None:
    roles = roles_of({name if old == "dev.nbest" else old: content for old, content in files.items()})
    assert (roles.dev is not None and roles.dev.nbest == name) == is_dev
    assert bool(roles.missing) != is_dev


def test_several_references_and_test_sets(roles_of: RolesOf, files: Files) -> None:
    """The first and last sentences may have no candidates. Several lists may share one test set."""
    second = marked(files["dev.en"], b"truly")
    late = b"".join(files["test.nbest"].splitlines(True)[9:-9])
    more = {"dev.en2": second, "report.nbest.100": late, "news 1.nbest.gz": files["test.nbest"]}
    roles = roles_of(files | more)
    assert roles.dev == NbestFiles(source="dev.de", reference=("dev.en", "dev.en2"), nbest="dev.nbest")
    assert {name: each.nbest for name, each in roles.tests.items()} == {
        "news-1": "news 1.nbest.gz",
        "report-2": "report.nbest.100",
        "test": "test.nbest",
    }
    assert {(each.source, each.reference) for each in roles.tests.values()} == {("test.de", ("test.en",))}
    assert roles.uses["test.de"] == "source of news-1, source of report-2, source of test"


def test_lists_that_are_not_a_test_set(roles_of: RolesOf, files: Files) -> None:
    other = shifted(files["test.nbest"], 1000)
    roles = roles_of(files | {"other": other, "again": files["dev.nbest"]})
    assert list(roles.tests) == ["test"]
    assert roles.reasons == {"other": "no source", "again": "another list of dev"}


def first_candidates(nbest: bytes) -> bytes:
    """Return the first candidate of each sentence."""
    firsts = {line.split(b" ", 1)[0]: line.split(b" ||| ")[1] for line in reversed(nbest.splitlines())}
    return b"".join(firsts[key] + b" \n" for key in sorted(firsts, key=int))


def test_the_output_of_a_system_is_not_a_reference(roles_of: RolesOf, files: Files) -> None:
    """This holds for all lists of the same source. Lines of sentences without candidates are blank."""
    late = b"".join(files["test.nbest"].splitlines(True)[9:-9])
    outputs = {
        "dev.out": first_candidates(files["dev.nbest"]),
        "test.moses": b"\n\n\n" + first_candidates(late) + b"\n\n\n",
    }
    roles = roles_of(files | outputs | {"test.nbest": late, "again.nbest": files["test.nbest"]})
    assert roles.dev == DEV
    assert {each.reference for each in roles.tests.values()} == {("test.en",)}
    assert "dev.out: not used (text, 120 lines; translation chosen from dev.nbest)" in roles.lines()
    assert roles.reasons["test.moses"].startswith("translation chosen from ")


@pytest.mark.parametrize("name", ["dev", "test"])
def test_references_are_tokenized_like_the_candidates(roles_of: RolesOf, files: Files, name: str) -> None:
    lines = files[f"{name}.en"].splitlines(True)
    sgm = b"".join(b'<seg id="%d"> %s </seg>\n' % (row, line.strip()) for row, line in enumerate(lines))
    others = {"raw": untokenized(files[f"{name}.en"])}
    if name == "test":  # for dev, this text could be the source
        others["tags"] = re.sub(rb"\S+", b"NN", files["test.en"])
    roles = roles_of(files | others | {"sgm": sgm})
    assert (roles.dev, roles.tests) == (DEV, {"test": TEST})
    assert "sgm: not used (SGML or XML)" in roles.lines()
    assert roles.reasons == dict.fromkeys(others, f"shares too few words with the candidates of {name}.nbest")


def test_the_training_corpus_covers_the_words_of_dev(roles_of: RolesOf, files: Files) -> None:
    """A longer pair of another kind, or a shorter pair in the same languages, is not chosen."""
    strange = {
        "fr": files["train.de"].replace(b"e", b"y").replace(b"n", b"q"),
        "another.de": files["train.de"].replace(b"d", b"D"),
        "log1": b"der step is done\n" * 500,
        "log2": b"the step is not\n" * 500,
        "few.de": files["train.de"][: files["train.de"].index(b"\n", 5000) + 1],
    }
    strange["few.en"] = b"".join(files["train.en"].splitlines(True)[: strange["few.de"].count(b"\n")])
    roles = roles_of(files | strange)
    assert roles.train == TRAIN
    assert not set(strange) & set(roles.uses)
    assert roles.reasons["another.de"] == "covers fewer words of dev than the training corpus"
    assert "log1" not in roles.reasons


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: untokenized(text) * 3, "covers fewer words of dev than the training corpus"),
        (lambda text: b"".join(text.splitlines(True)[:-20]), "shorter than the training corpus"),
    ],
)
def test_the_longest_corpus_that_is_tokenized_like_dev_is_chosen(
    roles_of: RolesOf, files: Files, change: Callable[[bytes], bytes], reason: str
) -> None:
    roles = roles_of(files | {f"all.{side}": change(files[f"train.{side}"]) for side in ("de", "en")})
    assert roles.train == TRAIN
    assert roles.reasons == {"all.de": reason, "all.en": reason}


def test_weights_of_another_system_are_not_used(roles_of: RolesOf, files: Files) -> None:
    other = files["moses.ini"].replace(b"LM0=", b"KENLM0=")
    roles = roles_of(files | {"a.ini": other, "z.ini": files["moses.ini"].replace(b"LM0= 0.14", b"LM0= 0.1 0.4")})
    assert roles.initial_weights == "moses.ini"
    messages = roles.lines()
    assert messages[0] == "a.ini: not used (weights; no weight for some features of dev.nbest)"
    assert messages[-1] == "z.ini: not used (weights; no weight for some features of dev.nbest)"


@pytest.mark.parametrize("form", ["dense", "init.opt"])
def test_weights_without_sections(roles_of: RolesOf, files: Files, form: str) -> None:
    """`runN.dense` or `init.opt` is used if no moses.ini is given."""
    _, _, lines = files["moses.ini"].decode().partition("[weight]\n")
    rows = [line.split() for line in lines.splitlines() if line and not line.startswith("Unknown")]
    dense = "".join(f"{name} {value}\n" for name, *values in rows for value in values)
    numbers = [value for _, *values in rows for value in values]
    opt = "".join(" ".join(row) + "\n" for row in (numbers, ["0"] * len(numbers), ["1"] * len(numbers)))
    more = {"w": (dense if form == "dense" else opt).encode(), "few": b"LM0= 1\n"}
    assert roles_of(files | more).initial_weights == "moses.ini"
    Path("moses.ini").unlink()
    roles = roles_of(more)
    assert (roles.initial_weights, roles.missing) == ("w", [])
    assert roles.reasons["few"] == "no weight for some features of dev.nbest"


def test_weights_without_sections_that_lack_features_are_reported(roles_of: RolesOf, files: Files) -> None:
    files = {name: content for name, content in files.items() if name != "moses.ini"}
    hint = "a weight for every feature of dev.nbest (add the moses.ini that Moses decoded with)"
    assert roles_of(files | {"w": b"LM0= 1\n"}).missing == [f"w: expected {hint}"]
    assert roles_of(files | {"w": b"LM0= 1\n", "x": b"LM0= 2\n"}).missing == [f"w and x: none has {hint}"]


def test_a_copy_of_a_model_is_omitted(roles_of: RolesOf, files: Files) -> None:
    roles = roles_of(files | {"copy.arpa": files["lm.arpa"], "lm2.arpa": files["lm.arpa"].replace(b"-0.1", b"-0.2")})
    assert roles.ngrams == ["copy.arpa", "lm2.arpa"]
    assert roles.reasons == {"lm.arpa": "the same as copy.arpa"}


def test_the_longest_target_text_is_monolingual_text(roles_of: RolesOf, files: Files) -> None:
    """Texts in the source language or in both, short texts, references and sides of a parallel text are excluded."""
    lines, source = files["train.en"].splitlines(True), files["train.de"].splitlines(True)
    texts = {"mono.en": lines[5:] * 2, "some.en": lines[7:], "mono.de": source[9:] * 3, "few.en": lines[:60]}
    texts |= {"pair.en": lines[:200], "pair.fr": [b"x y z\n"] * 200, "both": lines * 2 + source * 2}
    texts |= {"newstest.en": lines[:390] * 3}
    roles = roles_of(files | {name: b"".join(content) for name, content in texts.items()})
    assert (roles.train, roles.monolingual) == (TRAIN, "mono.en")
    assert "mono.en: monolingual text (text, 790 lines)" in roles.lines()
    assert "some.en: not used (text, 393 lines; shorter than the monolingual text)" in roles.lines()
    assert roles.reasons["pair.en"] == "as many lines as another text"
    assert not {"mono.de", "few.en", "both", "newstest.en"} & {*roles.uses, *roles.reasons}


PUT = "Put 'dev' into the name of the list to tune on"
EXPECTED = "expected its source and a reference, found"
NO_CORPUS = "no parallel corpus: expected two further texts with the same number of lines, in the languages of dev"


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"dev.nbest": None, "test.nbest": None}, ["no n-best list with its source and a reference"]),
        ({"dev.en": None}, [f"dev.nbest: {EXPECTED} dev.de"]),
        ({"dev.de": None}, [f"dev.nbest: {EXPECTED} dev.en"]),
        ({"dev.de": None, "dev.en": None}, [f"dev.nbest: {EXPECTED} neither"]),
        (
            {"dev.tok.de": "dev.de"},
            ["dev.nbest: dev.de and dev.tok.de could each be its source (give only one of them)"],
        ),
        ({"val": "dev.nbest"}, ["dev.nbest and val could each be the list of dev (give only one of them)"]),
        (
            {"dev.nbest": None, "test.nbest": None, "a": "dev.nbest", "b": "test.nbest"},
            ["a and b could each be the list of dev (put 'dev' into the name of one)"],
        ),
        ({"dev.nbest": None}, [f"no dev list: test.nbest is named like a test set. {PUT}"]),
        (
            {"dev.nbest": None, "test.nbest": None, "newstest2016": "dev.nbest", "run_eval": "test.nbest"},
            [f"no dev list: newstest2016 and run_eval are named like a test set. {PUT}"],
        ),
        ({"train.de": None}, [NO_CORPUS]),
        (
            {"train.en": "train.de"},
            [NO_CORPUS],
        ),
        ({"moses.ini": None}, ["no weights that Moses decoded with (moses.ini)"]),
        (
            {f"{name}.ini": "moses.ini" for name in "abc"},
            [
                "a.ini, b.ini, c.ini and 1 more: each has a weight for every feature of dev.nbest "
                "(give only one of them)"
            ],
        ),
        (
            {"moses.ini": None, "dev.nbest": None, "train.de": None, "test.nbest": None},
            [
                "no n-best list with its source and a reference",
                "no weights that Moses decoded with (moses.ini)",
            ],
        ),
    ],
)
def test_missing_inputs_are_reported(
    roles_of: RolesOf, files: Files, change: dict[str, str | None], missing: list[str]
) -> None:
    changed = files | {name: files[old] for name, old in change.items() if old}
    assert roles_of({name: changed[name] for name in changed if change.get(name, "") is not None}).missing == missing


def test_two_references_do_not_replace_the_source(roles_of: RolesOf, files: Files) -> None:
    others = {name: content for name, content in files.items() if name != "dev.de"}
    roles = roles_of(others | {"dev.en2": marked(files["dev.en"], b"truly")})
    assert roles.missing == [f"dev.nbest: {EXPECTED} dev.en and dev.en2"]


def test_a_faulty_list_is_an_error_with_its_name_and_line(roles_of: RolesOf, files: Files) -> None:
    with pytest.raises(InputError, match=r"^test.nbest:361: expected at least 3 fields"):
        roles_of(files | {"test.nbest": files["test.nbest"] + b"more\n"})


def test_files_in_folders(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("b", ".hidden", "inner/c", "a"):
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "dangling").symlink_to("nowhere")
    paths = [str(tmp_path / name) for name in ("a", "b", "dangling")]
    assert files_in([str(tmp_path), *paths[:2]]) == paths
    assert files_in([str(tmp_path / "link"), str(tmp_path / "inner")]) == [
        str(tmp_path / "inner/c"),
        str(tmp_path / "link"),
    ]
    with pytest.raises(InputError, match="nowhere: No such file or directory"):
        files_in([str(tmp_path), str(tmp_path / "nowhere")])
