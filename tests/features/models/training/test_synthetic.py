"""Training on synthetic pairs in addition to real pairs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from features.models.config import SIDES, WEIGHTS
from features.models.training.preparation import TAG
from features.models.training.request import TrainingFiles, TrainingRequest, synthetic_files, train_model
from features.models.vocabulary import load_vocabulary
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles

TINY = {"embedding_size": 8, "hidden_size": 8, "attention_size": 8, "epochs": 2, "seed": 3}


@pytest.fixture
def files(tmp_path: Path, sample: Path) -> TrainingFiles:
    """The first 60 pairs of the sample as corpus, 40 others as synthetic pairs and 20 as dev."""
    for side in ("de", "en"):
        lines = (sample / f"train.{side}").read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / f"real.{side}").write_text("".join(lines[:60]), encoding="utf-8")
        (tmp_path / f"more.{side}").write_text("".join(lines[60:100]), encoding="utf-8")
        (tmp_path / f"dev.{side}").write_text("".join(lines[100:120]), encoding="utf-8")
    return TrainingFiles(
        corpus=ParallelFiles(str(tmp_path / "real.de"), str(tmp_path / "real.en")),
        dev=ParallelFiles(str(tmp_path / "dev.de"), str(tmp_path / "dev.en")),
        synthetic=ParallelFiles(str(tmp_path / "more.de"), str(tmp_path / "more.en")),
    )


@pytest.mark.parametrize("settings", [{"tag": True}, {"tag": False}, {"tag": False, "guided_alignment": 0.5}])
def test_the_model_equals_one_trained_on_a_joined_corpus(
    settings: dict[str, Any], files: TrainingFiles, tmp_path: Path
) -> None:
    """The subword vocabulary is learned from all pairs. Synthetic pairs have no links."""
    assert files.synthetic
    tag, settings = settings["tag"], TINY | {"bpe": 120} | settings
    if "guided_alignment" in settings:
        (tmp_path / "links").write_text(30 * "0-0 1-1\n" + 30 * "1-0\n")
        (tmp_path / "all.links").write_text(3 * (tmp_path / "links").read_text() + 40 * "\n")
        files = replace(files, corpus=replace(files.corpus, alignment=str(tmp_path / "links")))
    request = TrainingRequest("rnnsearch", settings=settings | {"upsample": 3})
    train_model(request, files, str(tmp_path / "synthetic"), "cpu")
    assert files.synthetic
    for side in ("source", "target"):
        real, more = (Path(getattr(part, side)).read_text() for part in (files.corpus, files.synthetic))
        if tag and side == "source":
            more = "".join(f"{TAG} {line}" for line in more.splitlines(keepends=True))
        (tmp_path / side).write_text(3 * real + more)
    links = str(tmp_path / "all.links") if files.corpus.alignment else ""
    one = TrainingFiles(ParallelFiles(str(tmp_path / "source"), str(tmp_path / "target"), links), files.dev)
    train_model(TrainingRequest("rnnsearch", settings=settings), one, str(tmp_path / "one"), "cpu")
    synthetic, joined = (load_file(tmp_path / name / WEIGHTS) for name in ("synthetic", "one"))
    assert synthetic.keys() == joined.keys()
    assert all(bool((synthetic[name] == joined[name]).all()) for name in joined)


def test_the_word_vocabulary_excludes_synthetic_pairs(files: TrainingFiles, tmp_path: Path) -> None:
    settings = TINY | {"epochs": 1, "min_frequency": 1}
    for name, known in (("synthetic", files), ("real", TrainingFiles(files.corpus, files.dev))):
        train_model(TrainingRequest("rnnsearch", settings=settings), known, str(tmp_path / name), "cpu")
    words = {
        name: [load_vocabulary(tmp_path / name, side, False).words[4:] for side in SIDES]
        for name in ("synthetic", "real")
    }
    assert words["synthetic"] == [(TAG, *words["real"][0]), words["real"][1]]


def test_the_lexicon_is_estimated_from_real_pairs_only(files: TrainingFiles, tmp_path: Path) -> None:
    """Tested with and without word alignment."""
    corpus = ParallelFiles(files.corpus.source, files.corpus.target, alignment=str(tmp_path / "links"))
    (tmp_path / "links").write_text("0-0\n" * 60)
    for index, known in enumerate((files.corpus, corpus)):
        settings = TINY | {"epochs": 1, "lexicon": "bias", "guided_alignment": 0.5 * index, "tag": False, "upsample": 2}
        synthetic = TrainingFiles(known, files.dev, files.synthetic)
        request = TrainingRequest("rnnsearch", settings=settings)
        train_model(request, synthetic, str(tmp_path / f"synthetic{index}"), "cpu")
        real = TrainingFiles(known, files.dev)
        request = TrainingRequest("rnnsearch", settings=settings | {"upsample": 1})
        train_model(request, real, str(tmp_path / f"real{index}"), "cpu")
        tables = [load_file(tmp_path / f"{name}{index}" / WEIGHTS) for name in ("synthetic", "real")]
        names = [name for name in tables[0] if name.startswith("lexicon.") and "words" in name]
        assert names
        assert all(bool((tables[0][name] == tables[1][name]).all()) for name in names)


def test_an_initial_model_without_the_tag_needs_tag_false(files: TrainingFiles, tmp_path: Path) -> None:
    settings: dict[str, Any] = TINY | {"epochs": 1}
    train_model(TrainingRequest("rnnsearch", settings=settings), replace(files, synthetic=None), f"{tmp_path}/a", "cpu")
    with pytest.raises(InputError, match=r"a: a model without <BT>, the tag of synthetic sources\. Set tag=false$"):
        train_model(TrainingRequest("rnnsearch", settings=settings), files, f"{tmp_path}/b", "cpu", f"{tmp_path}/a")
    untagged = TrainingRequest("rnnsearch", settings=settings | {"tag": False})
    train_model(untagged, files, f"{tmp_path}/c", "cpu", f"{tmp_path}/a")


def test_resuming_with_another_synthetic_text_is_an_error(files: TrainingFiles, tmp_path: Path) -> None:
    request = TrainingRequest("rnnsearch", settings=TINY | {"epochs": 1})
    train_model(request, files, str(tmp_path / "model"), "cpu")
    train_model(request, files, str(tmp_path / "model"), "cpu", resume=True)
    assert files.synthetic
    other = TrainingFiles(files.corpus, files.dev, ParallelFiles(files.synthetic.target, files.synthetic.target))
    for changed in (other, TrainingFiles(files.corpus, files.dev)):
        with pytest.raises(InputError, match="this model was trained on other text"):
            train_model(request, changed, str(tmp_path / "model"), "cpu", resume=True)


@pytest.mark.parametrize("model", [TrainingRequest("rnnsearch", backward=True), TrainingRequest("cohn-align-sym")])
def test_synthetic_pairs_for_models_of_the_source_are_an_error(
    model: TrainingRequest, files: TrainingFiles, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"more\.de: synthetic pairs are for forward models"):
        train_model(model, files, str(tmp_path / "model"), "cpu")
    assert not (tmp_path / "model").exists()


def test_one_side_of_synthetic_pairs_is_an_error() -> None:
    with pytest.raises(InputError, match=r"^a\.de: synthetic pairs need both sides, the target is missing$"):
        synthetic_files("a.de", "")
    assert synthetic_files("", "") is None


def test_upsampling_needs_synthetic_pairs(files: TrainingFiles, tmp_path: Path) -> None:
    request = TrainingRequest("rnnsearch", settings={"upsample": 2})
    with pytest.raises(InputError, match="setting 'upsample' is for training on synthetic pairs"):
        train_model(request, TrainingFiles(files.corpus, files.dev), str(tmp_path / "model"), "cpu")
