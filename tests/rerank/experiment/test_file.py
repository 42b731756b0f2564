import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from features.feature import Resources
from features.models.settings import RENAMED as SETTINGS
from features.models.training.request import TrainingRequest
from features.request import parse_requests
from moses_io.files.errors import InputError
from rerank.experiment import chain
from rerank.experiment.costs import Costs
from rerank.experiment.entries import RESERVED_NAMES, NbestFiles
from rerank.experiment.file import ModelEntry, read_experiment
from rerank.experiment.toml import RENAMED
from rerank.tuning.tune import FoldSettings, make_tuning

Write = Callable[[str, "str | bytes"], Path]

EXPERIMENT = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = ["dev.en", "/abs/dev.en2"], nbest = "dev.nbest.gz" }
test = { source = "test.de", reference = "test.en", nbest = "test.nbest.gz" }

[models]
forward.preset = "cohn-align"
forward.hidden_size = 64
forward.learning_rate = 0.01
forward.attention_terms = ["markov"]
forward.reverse_source = false
back = { preset = "rnnsearch", backward = true, right_to_left = true }
pair = { preset = "cohn-align-sym" }
fertile = { preset = "cohn-align-sym-glofer-pre", pretrained_model = "pair" }

[features]
NMT = "neural:forward"
Old = "neural:models/old"
Both = "ensemble:pair/forward,fertile/forward"
LMbig = "kenlm:lm.arpa"
Len = "length"
Opus = "hf:models/old[deu,eng]"

[tuning]
seed = 7
"""


def test_a_run_does_not_write_its_models_over_its_experiment_file(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT.partition("[models]")[0].replace('"work"', '"."'))
    with pytest.raises(InputError, match="would write the models that it chooses over this file"):
        read_experiment(str(path))
    assert read_experiment(str(path.rename(tmp_path / "e.toml"))).unplanned


def test_read_an_experiment_file(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(EXPERIMENT)
    (tmp_path / "models" / "old").mkdir(parents=True)
    experiment = read_experiment(str(path))
    assert experiment.output == tmp_path / "work"
    assert experiment.dev == NbestFiles(
        source=f"{tmp_path}/dev.de", reference=(f"{tmp_path}/dev.en", "/abs/dev.en2"), nbest=f"{tmp_path}/dev.nbest.gz"
    )
    forward = {"hidden_size": 64, "learning_rate": 0.01, "attention_terms": ["markov"], "reverse_source": False}
    assert experiment.models["forward"] == ModelEntry(TrainingRequest("cohn-align", settings=forward))
    assert experiment.models["back"] == ModelEntry(TrainingRequest("rnnsearch", True, True))
    assert experiment.models["fertile"].pretrained_model == "pair"
    features = [
        "NMT=neural:forward", f"Old=neural:{tmp_path / 'models/old'}", "Both=ensemble:pair/forward,fertile/forward",
        f"LMbig=kenlm:{tmp_path / 'lm.arpa'}", "Len=length", f"Opus=hf:{tmp_path / 'models/old'}[deu,eng]",
    ]  # fmt: skip
    assert list(experiment.features.values()) == parse_requests(features, str(tmp_path))
    assert list(experiment.features) == ["NMT", "Old", "Both", "LMbig", "Len", "Opus"]
    assert experiment.tuning.tuning == make_tuning({"seed": 7})
    assert experiment.tuning.fold_settings == FoldSettings(5, fallback=True)
    assert experiment.tuning.confidence == "bleu"
    path.write_text(f'{EXPERIMENT}metric = "ter"\n')
    assert read_experiment(str(path)).tuning.confidence == "ter"
    path.write_text(f'{EXPERIMENT}metric = "ter"\nconfidence = "chrf3"\n')
    assert read_experiment(str(path)).tuning.confidence == "chrf3"
    path.write_text(f"{EXPERIMENT}folds = 0\n")
    assert read_experiment(str(path)).tuning.fold_settings == FoldSettings()
    path.write_text(f'{EXPERIMENT}tuner = "auto"\nfolds = 2\n'.replace("seed = 7", ""))
    with pytest.raises(InputError, match=r"tuning: folds: auto needs at least 3 without \[selection\], found 2"):
        read_experiment(str(path))
    path.write_text(EXPERIMENT.partition("[features]")[0])
    assert read_experiment(str(path)).tuning.fold_settings == FoldSettings()


def test_a_comma_in_the_path_of_a_feature_with_parts_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "de,en").mkdir()
    (tmp_path / "de,en" / "models" / "old").mkdir(parents=True)
    path = tmp_path / "de,en" / "e.toml"
    path.write_text(EXPERIMENT.replace('"length"', '"ibm1:train.de,train.en"'))
    with pytest.raises(
        InputError, match=r"features\.Len: feature 'ibm1:train.de,train.en': a comma in '.*de,en/train.de'"
    ):
        read_experiment(str(path))


def test_the_first_model_of_an_ensemble_gives_the_fertility(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    (tmp_path / "models" / "old").mkdir(parents=True)
    path.write_text(EXPERIMENT.replace("pair/forward,fertile/forward", "fertile/forward,pair/forward[fertility]"))
    assert read_experiment(str(path)).features["Both"].argument == "fertile/forward,pair/forward[fertility]"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('initial_weights = "moses.ini"', "", "initial_weights: expected a path, found nothing"),
        ("initial_weights", "inital_weights", "unknown key inital_weights. Did you mean 'initial_weights'?"),
        ("nbest", "nbset", "unknown key dev.nbset. Did you mean 'nbest'?"),
        ("hidden_size", "hiden", "models.forward: unknown setting 'hiden'. Did you mean 'hidden_size'?"),
        ("cohn-align", "cohn", "models.forward: unknown preset 'cohn'"),
        ('"length"', '"lenght"', "unknown feature 'lenght'. Did you mean 'length'?"),
        ("seed = 7", "sed = 7", "tuning: unknown key 'sed'. Did you mean 'seed'?"),
        ("seed = 7", 'tuner = "pro"\nkept = 9', "tuning: unknown key 'kept'. It is now max_pairs"),
        ("seed = 7", 'seed = "x"', "tuning: seed: expected a whole number from 0, found 'x'"),
        ("neural:forward", "neural:forwrad", "features.NMT: no model and no folder 'forwrad'. Models: forward, back"),
        (
            "neural:forward",
            "neural:pair",
            "features.NMT: no model 'pair'. Expected pair/forward or pair/backward",
        ),
        ("neural:forward", "links:back", "features.NMT: expected a forward model, 'back' is not one"),
        ("neural:forward", "agreement:forward,back", "features.NMT: 'back': expected a left-to-right model on"),
        ("neural:forward", "neural:forward[fertility]", "features.NMT: 'forward': a model without global fertility"),
        (
            "neural:forward",
            "ensemble:forward,fertile/forward[fertility]",
            "'forward': a model without global fertility",
        ),
        ("neural:forward", "neural:forward[entropie]", "unknown value 'entropie'. Did you mean 'entropy'"),
        ("neural:forward", "neural:forward[worst,worst]", "[worst,worst]': value 'worst' occurs twice"),
        (
            "neural:forward",
            "ensemble:forward",
            "'ensemble:forward': expected several models, separated by commas",
        ),
        ("neural:forward", "neural:back/forward", "features.NMT: no model 'back/forward'. Expected back"),
        (
            '"cohn-align-sym" }',
            '"cohn-align-sym", hidden_size = 9 }',
            "pretrained_model: that model has hidden_size 9, this one 256",
        ),
        (
            'pretrained_model = "pair"',
            'pretrained_model = "forward"',
            "pretrained_model: that model has symmetric False, this one True",
        ),
        (
            '"cohn-align-sym" }',
            '"cohn-align-sym", vocabulary_size = 9 }',
            "pretrained_model: that model has another vocabulary",
        ),
        ("reverse_source = false", 'decoder = "no-attention"', "models.forward: decoder 'no-attention' has no scores"),
        (
            '"cohn-align-sym" }',
            '"cohn-align-sym", decoder = "attend-after" }',
            "the trace of both directions needs decoder",
        ),
        (
            ', pretrained_model = "pair"',
            "",
            "models.fertile: preset 'cohn-align-sym-glofer-pre' starts from a trained model",
        ),
        (
            'pretrained_model = "pair"',
            "pretrained_model = 5",
            "models.fertile.pretrained_model: expected the name of a model or a folder, found 5",
        ),
        (
            'pretrained_model = "pair"',
            'pretrained_model = "par"',
            "models.fertile.pretrained_model: no model and no folder 'par'",
        ),
        (
            'pretrained_model = "pair"',
            'pretrained_model = "fertile"',
            "models.fertile.pretrained_model: a model cannot start from itself",
        ),
        (
            "reverse_source = false",
            "reverse_source = true",
            "models.forward: reverse_source needs encoder=unidirectional",
        ),
        ("seed = 7", 'confidence = "chrfff"', "tuning: confidence: unknown metric 'chrfff'. Did you mean 'chrf'?"),
        ("seed = 7", "confidence = true", "tuning: confidence: metric: expected a name such as 'bleu', found True"),
        ("seed = 7", "seed = -1", "tuning: seed: expected a whole number from 0, found -1"),
        ("seed = 7", 'tuner = "kbmira"\niterations = 0', "tuning: iterations: expected a whole number from 1, found 0"),
        ("seed = 7", 'tuner = "kbmira"\nC = 0', "tuning: C: expected a number above 0, found 0"),
        ("seed = 7", 'tuner = "kbmira"\ndecay = 2', "tuning: decay: expected a number above 0 and at most 1, found 2"),
        ("seed = 7", 'fallback = "no"', "tuning: fallback: expected true or false, found 'no'"),
        ("seed = 7", "ablate = 1", "tuning: ablate: expected true or false, found 1"),
        ("backward = true", 'backward = "false"', "models.back.backward: expected true or false, found 'false'"),
        ('"rnnsearch"', "3", "models.back: expected a table with a preset"),
        ('"test.en"', "[]", "test.reference: expected a path, found []"),
        ('reference = ["dev.en", "/abs/dev.en2"], ', "", "dev.reference: expected a path, found nothing"),
        ('nbest = "test.nbest.gz"', 'nbset = "x"', "unknown key test.nbset. Did you mean 'nbest'?"),
        ("[tuning]", "[tuning", "Expected ']'"),
        (
            '{ preset = "rnnsearch", backward = true, right_to_left = true }',
            "1",
            "models.back: expected a table with a preset",
        ),
        ('{ source = "train.de", target = "train.en" }', "1", "train: expected a table, found 1"),
        ('"train.en" }', '"train.en", alignment = 3 }', "train.alignment: expected a path, found 3"),
        (
            "hidden_size = 64",
            "guided_alignment = 1",
            "models.forward: setting 'guided_alignment' needs the word alignment of the corpus",
        ),
        ("hidden_size = 64", "guided_alignment = -1", "models.forward: setting 'guided_alignment': -1 is out of range"),
        ('"train.en" }', '"train.en", links = "x" }', "unknown key train.links"),
    ],
)
def test_wrong_values_are_errors(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = tmp_path / "e.toml"
    path.write_text(EXPERIMENT.replace(before, after))
    (tmp_path / "models" / "old").mkdir(parents=True)
    with pytest.raises(InputError) as caught:
        read_experiment(str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_key_is_an_error_that_names_the_new_key(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "e.toml"
    of_model = EXPERIMENT.replace('forward.preset = "cohn-align"', f'forward.preset = "cohn-align"\nforward.{old} = 1')
    path.write_text(of_model if "-" in old else f"{old} = 1\n{EXPERIMENT}")
    with pytest.raises(InputError, match=f"unknown key {old}. It is now {new}$"):
        read_experiment(str(path))


@pytest.mark.parametrize(("old", "new"), SETTINGS.items())
def test_an_old_model_setting_is_an_error_that_names_the_new_setting(write: Write, old: str, new: str) -> None:
    path = write("e.toml", EXPERIMENT.replace("forward.hidden_size = 64", f"forward.{old} = 64"))
    with pytest.raises(InputError, match=f"models.forward: unknown setting '{old}'. It is now '{new}'$"):
        read_experiment(str(path))


def test_a_model_name_as_candidates_is_an_error_that_names_the_new_key(tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text(EXPERIMENT.replace("forward.hidden_size = 64", 'forward.candidates = "back"'))
    with pytest.raises(InputError, match=r"candidates: expected a number.* translate_with$"):
        read_experiment(str(path))


def test_the_alignment_of_the_corpus_is_an_input_of_trainings(write: Write, tmp_path: Path) -> None:
    """Only models that learn from alignment links depend on this file."""
    models = 'm = { preset = "rnnsearch", lexicon = "bias" }\nn = { preset = "rnnsearch" }\n'
    text = f"{ONE}{EXPERIMENT[: EXPERIMENT.index('test = ')]}[features]\n[models]\n{models}"
    with_links = text.replace('"train.en" }', '"train.en", alignment = "gdfa.gz" }')
    without, given = (read_experiment(str(write("e.toml", each))) for each in (text, with_links))
    assert given.train.alignment == f"{tmp_path}/gdfa.gz"
    assert set(given.files) - set(without.files) == {given.train.alignment}
    before, after = (chain.trainings(each, Resources("cpu"), Costs(each, "cpu")) for each in (without, given))
    more = [set(new.inputs) - set(old.inputs) for old, new in zip(before, after, strict=True)]
    assert more == [{given.train.alignment}, set()]


SETS = """
[[test]]
name = "news"
source = "news.de"
nbest = "news.nbest"

[[test]]
name = "talks.2016"
source = "talks.de"
reference = ["talks.en", "talks.en2"]
nbest = "talks.nbest"
"""
ONE = EXPERIMENT[EXPERIMENT.index("test = ") : EXPERIMENT.index("[models]")]


def read_tests(write: Write, text: str) -> dict[str, NbestFiles]:
    head = EXPERIMENT[: EXPERIMENT.index("test = ")]
    return read_experiment(str(write("e.toml", f"{head}{text}\n[features]\n"))).tests


def test_any_number_of_test_sets(write: Write, tmp_path: Path) -> None:
    news = NbestFiles(source=f"{tmp_path}/news.de", reference=(), nbest=f"{tmp_path}/news.nbest")
    references = (f"{tmp_path}/talks.en", f"{tmp_path}/talks.en2")
    talks = NbestFiles(source=f"{tmp_path}/talks.de", reference=references, nbest=f"{tmp_path}/talks.nbest")
    assert read_tests(write, "") == {}
    assert read_tests(write, SETS) == {"news": news, "talks.2016": talks}
    assert read_tests(write, 'test = { source = "news.de", nbest = "news.nbest" }') == {"test": news}
    assert list(read_tests(write, ONE)) == ["test"]


def test_paths_of_reports(write: Write, tmp_path: Path) -> None:
    experiment = read_experiment(str(write("e.toml", EXPERIMENT[: EXPERIMENT.index("[models]")] + "[features]")))
    reports = [Path(experiment.report("test", "txt")), Path(experiment.report("news", "html"))]
    assert reports == [tmp_path / "work" / "report.txt", tmp_path / "work" / "news.report.html"]
    assert list(experiment.sets) == ["dev", "test"]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('name = "news"\n', "", "test.name: expected a name, found nothing in the [[test]] with number 1"),
        ('name = "talks.2016"', "name = 3", "test.name: expected a name, found 3 in the [[test]] with number 2"),
        ("talks.2016", "news", "test.news: another test set has this name. Choose another one"),
        (
            "talks.2016",
            "a/b",
            "test: expected names of letters, digits, '_', and after the first character '-' and '.'",
        ),
        ('nbest = "news.nbest"\n', "", "test.news.nbest: expected a path, found nothing"),
        ('source = "talks.de"\n', "", "test.talks.2016.source: expected a path, found nothing"),
        ('source = "talks.de"', 'sorce = "talks.de"', "unknown key test.talks.2016.sorce. Did you mean 'source'?"),
        ('["talks.en", "talks.en2"]', "[]", "test.talks.2016.reference: expected a path, found []"),
        ('["talks.en", "talks.en2"]', '["talks.en", true]', "test.talks.2016.reference: expected paths, found True"),
        (SETS, "test = [3]", "test: expected a table, found 3"),
        *(
            ("talks.2016", name, f"test.{name}: files of the results have this name. Choose another one")
            for name in RESERVED_NAMES
        ),
    ],
)
def test_wrong_test_sets_are_errors(write: Write, before: str, after: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_tests(write, SETS.replace(before, after))
    assert f"e.toml: {message}" in str(caught.value)


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(InputError, match=r"nowhere\.toml: No such file"):
        read_experiment("nowhere.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a = " + "[" * 9_000, ": nested too deeply"),
        ("a" + ".a" * 9_000 + " = 1", ": expected lines of at most 10,000 bytes"),
        ("a" + ".a" * 2000 + " = 1", ": more than 16 tables or lists inside each other"),
        ("a = " + "[" * 20 + "]" * 20, ": more than 16 tables or lists inside each other"),
        (f"a = {'9' * 5000}", ": a number of too many digits"),
        (f"a = 0x{'f' * 5000}", ": a whole number of more than 64 bits"),
        ("a = [{b = 18446744073709551616}]", ": a whole number of more than 64 bits"),
        ('a = "x\\u0000y"', ": a NUL in 'x\\x00y'"),
        ('[features]\n"N\\u0000" = "length"', ": a NUL in 'N\\x00'"),
        (b"a = 1\n# caf\xe9\n", ":2: not UTF-8, which TOML requires"),
        (b"a = 1\n\0", ": "),
        (b"#\n" * 2**18, ": larger than 256 KB, expected a small file of TOML"),
    ],
    ids=lambda value: str(value[:24]),
)
def test_extreme_toml_is_an_error(write: Write, content: "str | bytes", message: str) -> None:
    path = write("e.toml", content)
    with pytest.raises(InputError) as caught:
        read_experiment(str(path))
    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)


def test_pipes_devices_and_folders_are_errors(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    for path, kind in ((pipe, "a pipe or a device"), (Path("/dev/zero"), "a pipe or a device"), (tmp_path, "a folder")):
        with pytest.raises(InputError, match=f"{path}: {kind}, expected a plain file"):
            read_experiment(str(path))


@pytest.mark.parametrize(
    "name",
    ["../../evil", "/abs", "..", ".", "", ".hidden", "a/b", "a b", "a,b", r"C:\\evil", "-x", "x" * 101, "é" * 51],
)
def test_names_of_models_must_be_valid_folder_names(write: Write, tmp_path: Path, name: str) -> None:
    for entry in ('preset = "rnnsearch"', 'preset = "rnnsearch", seeds = 2'):
        path = write("e.toml", EXPERIMENT.replace("[features]", f'"{name}" = {{ {entry} }}\n[features]'))
        with pytest.raises(InputError, match=r"e\.toml: models: expected names of letters, digits"):
            read_experiment(str(path))
    assert [each.name for each in tmp_path.iterdir()] == ["e.toml"]


def test_a_user_module_is_found_in_the_folder_of_the_file_without_import(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder_of_file").mkdir()
    (tmp_path / "models" / "old").mkdir(parents=True)
    write("folder_of_file/mine_next_to_file.py", "class Mine:\n    def __call__(self, sentences): ...\n")
    write("mine_next_to_file.py", "raise ValueError('this is not next to the file')\n")
    write("folder_of_file/redis.py", "raise ValueError('nobody named this')\n")
    text = EXPERIMENT.replace("models/old", "../models/old").replace('"length"', '"mine_next_to_file:Mine"')
    path, before = write("folder_of_file/e.toml", text), list(sys.path)
    monkeypatch.chdir(tmp_path)
    request = read_experiment(str(path)).features["Len"]
    assert request.code == [str(tmp_path / "folder_of_file" / "mine_next_to_file.py")]
    assert sys.path == before and "mine_next_to_file" not in sys.modules


@pytest.mark.parametrize("leader", ['preset = "rnnsearch"', 'preset = "rnnsearch", seeds = 2'])
def test_models_of_several_entries_translate_together(write: Write, tmp_path: Path, leader: str) -> None:
    (tmp_path / "models" / "old").mkdir(parents=True)
    entries = f"""other = {{ preset = "cohn-align", translate_with = "left" }}
left = {{ {leader}, candidates = 7 }}
right = {{ preset = "rnnsearch", right_to_left = true, candidates = 3 }}
"""
    path = write("e.toml", EXPERIMENT.replace("[features]", f"{entries}[features]"))
    left, right = read_experiment(str(path)).candidates
    names = [["left"], ["left-rnnsearch-1", "left-rnnsearch-2"]]["seeds" in leader]
    assert (left.name, left.size, [Path(each).name for each in left.folders]) == ("left", 7, ["other", *names])
    assert (right.name, right.size, [Path(each).name for each in right.folders]) == ("right", 3, ["right"])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            'translate_with = "nobody"',
            r"models\.other\.translate_with: expected the name of a model with candidates, found 'nobody'",
        ),
        (
            'translate_with = "plain"',
            r"models\.other\.translate_with: expected the name of a model with candidates, found 'plain'",
        ),
        (
            'translate_with = "left", candidates = 3',
            "candidates: with translate_with, give the number in the entry of 'l",
        ),
        (
            'translate_with = "left", backward = true',
            r"models\.other: candidates: a backward model predicts the source",
        ),
        (
            'translate_with = "left", right_to_left = true',
            "models.left: candidates: left and other have different target vocabularies",
        ),
        (
            'translate_with = "left", bpe = 300',
            r"left and other have different .* together. Give each its own candidates",
        ),
    ],
)
def test_models_that_cannot_translate_together(write: Write, tmp_path: Path, entry: str, message: str) -> None:
    (tmp_path / "models" / "old").mkdir(parents=True)
    entries = f"""left = {{ preset = "rnnsearch", candidates = 7 }}
plain = {{ preset = "rnnsearch" }}
other = {{ preset = "rnnsearch", {entry} }}
"""
    path = write("e.toml", EXPERIMENT.replace("[features]", f"{entries}[features]"))
    with pytest.raises(InputError, match=message):
        read_experiment(str(path))


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """Some editors of Windows write one."""
    path = tmp_path / "e.toml"
    path.write_bytes(b"\xef\xbb\xbfoutput = 1\n")
    with pytest.raises(InputError, match=r"e\.toml: train\.source: expected a path, found nothing"):
        read_experiment(str(path))
