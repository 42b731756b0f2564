from collections.abc import Callable
from pathlib import Path

import pytest

from rerank.experiment.file import read_experiment
from rerank.experiment.studies.file import read_study
from rerank.experiment.studies.grid import cells, replicates


def written(study: Path) -> dict[str, Path]:
    """Write the experiment files of all cells and return their paths by cell name."""
    read = read_study(str(study))
    paths = {}
    for replicate in replicates(read):
        for cell in cells(read, replicate):
            cell.path.parent.mkdir(parents=True)
            cell.path.write_text(cell.text)
            paths[cell.name] = cell.path
    return paths


def test_each_size_seed_and_system_is_a_cell(study: Path) -> None:
    cells = [f"{size}/seed-{seed}/{system}" for size in (60, 120) for seed in (1, 2) for system in ("both", "alone")]
    assert list(written(study)) == cells


def test_a_cell_is_a_separate_experiment(study: Path) -> None:
    """A cell uses the models of its size and seed, the first pairs of the corpus, and the complete lists."""
    folder = study.parent
    experiment = read_experiment(str(written(study)["60/seed-2/both"]))
    assert experiment.output.resolve() == folder / "work/60/seed-2/both"
    assert Path(experiment.model("forward")).resolve() == folder / "work/60/seed-2/models/forward"
    assert experiment.models["forward"].request.settings["seed"] == 2
    cut = [str(folder / f"work/60/train.{side}") for side in ("source", "target")]
    assert [str(Path(path).resolve()) for path in experiment.train.files] == cut
    assert [str(Path(path).resolve()) for path in experiment.features["Len"].parts] == cut
    assert Path(experiment.dev.nbest).resolve() == folder / "dev.nbest"
    assert Path(experiment.initial_weights).resolve() == folder / "moses.ini"
    assert experiment.tuning.tuning.settings.seed == 2


def test_the_results_folder_may_be_a_symbolic_link(study: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Paths in the files of cells are relative to the target of the link."""
    scratch = tmp_path_factory.mktemp("scratch") / "deep" / "work"
    scratch.mkdir(parents=True)
    (study.parent / "work").symlink_to(scratch)
    experiment = read_experiment(str(written(study)["60/seed-2/both"]))
    assert Path(experiment.dev.nbest).resolve() == study.parent / "dev.nbest" and Path(experiment.dev.nbest).exists()


def test_a_deterministic_tuner_gets_no_seed(study: Path) -> None:
    random = 'tuner = "kbmira"\niterations = 2\nruns = 1\n'
    study.write_text(study.read_text().replace(random, 'tuner = "expected"\n'))
    assert "seed" not in written(study)["60/seed-2/both"].read_text().partition("[tuning]")[2]
    assert read_experiment(str(study.parent / "work/60/seed-2/both/experiment.toml")).tuning.tuning.tuner == "expected"


def test_a_cell_without_its_trained_models_is_an_error(
    study: Path, command: Callable[..., tuple[int, bytes, str]]
) -> None:
    path = written(study)["120/seed-1/alone"]
    status, out, err = command("run", path, "--device", "cpu")
    assert (status, out) == (2, b"")
    assert err.endswith("/models/forward: no such folder, expected the trained model 'forward'\n")
    assert len(err.splitlines()) == 1


def test_the_whole_corpus_is_not_copied(study: Path) -> None:
    experiment = read_experiment(str(written(study)["120/seed-1/both"]))
    assert [Path(path).resolve() for path in experiment.train.files] == [
        study.parent / "train.de",
        study.parent / "train.en",
    ]


def test_a_system_has_the_models_that_it_needs(study: Path) -> None:
    """Models of its features, the pretrained models of these, and unused models that generate candidates."""
    text = study.read_text().replace(
        "[features]",
        'first = { preset = "cohn-align", hidden_size = 8, seed = "5" }\n'
        'second = { preset = "cohn-align", hidden_size = 8, pretrained_model = "first" }\n'
        'generator = { preset = "rnnsearch", candidates = 2 }\n'
        "[features]\n"
        'Second = "neural:second"',
    )
    study.write_text(text.replace('alone = ["NMT"]', 'alone = ["Second"]'))
    paths = written(study)
    both, alone = (read_experiment(str(paths[f"60/seed-2/{system}"])) for system in ("both", "alone"))
    assert list(both.models) == ["forward", "generator"]
    assert list(alone.models) == ["first", "second", "generator"]
    assert alone.models["second"].pretrained_model == "first"
    assert alone.models["first"].request.settings["seed"] == 1005
    assert alone.models["generator"].candidates == 2


def test_models_that_translate_together_in_each_system(study: Path) -> None:
    """The named model leads the group, or else the first one in the system. An entry with seeds is a group."""
    small = 'preset = "rnnsearch", hidden_size = 8'
    models = [
        f'second = {{ {small}, translate_with = "leader" }}',
        f'third = {{ {small}, translate_with = "leader" }}',
        f"leader = {{ {small}, candidates = 2 }}",
        f"many = {{ {small}, candidates = 3, seeds = 2 }}",
    ]
    features = ["Leader", "Second", "Third", "Many"]
    text = study.read_text().replace("[features]", "\n".join(models) + "\n[features]")
    text = text.replace(
        "[tuning]", "\n".join(f'{label} = "neural:{label.lower()}"' for label in features) + "\n[tuning]"
    )
    study.write_text(
        text.replace('"NMT", "Len"', '"Leader", "Second", "Many"').replace('["NMT"]', '["Second", "Third"]')
    )
    paths = written(study)
    both, alone = (read_experiment(str(paths[f"60/seed-2/{system}"])) for system in ("both", "alone"))
    assert {name: (entry.group, entry.candidates) for name, entry in both.models.items()} == {
        "second": ("leader", 2), "leader": ("", 2),
        "many-rnnsearch-1": ("", 3), "many-rnnsearch-2": ("many-rnnsearch-1", 3),
    }  # fmt: skip
    assert {name: (entry.group, entry.candidates) for name, entry in alone.models.items()} == {
        "second": ("", 2), "third": ("second", 2)
    }  # fmt: skip


def test_a_cell_keeps_the_moses_output(study: Path) -> None:
    (study.parent / "test.moses").write_text("a\n" * 16)
    text = study.read_text().replace('nbest = "test.nbest"', 'nbest = "test.nbest", moses_output = "test.moses"')
    study.write_text(text)
    experiment = read_experiment(str(written(study)["60/seed-2/both"]))
    assert Path(experiment.tests["test"].moses_output).resolve() == study.parent / "test.moses"
