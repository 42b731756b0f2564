from pathlib import Path

import numpy as np
import pytest

import features.reader as features_reader
from features.feature import Candidates, Resources
from features.kinds.agreement import Agreement, Links
from features.models.folder import load_model
from features.models.scoring.alone import score_pairs
from features.models.training.request import ParallelFiles, TrainingFiles, TrainingRequest, train_model
from features.request import parse_requests
from moses_io.errors import InputError
from moses_io.hypothesis import parse_line

TEXTS = [("die Zeitung", ["the newspaper .", "the", ""]), ("im Wald gibt es eine Lampe .", ["there is a lamp ."])]
SENTENCES = [
    Candidates(
        number,
        tuple(source.split(" ")),
        tuple(tuple(text.split()) for text in texts),
        tuple(
            parse_line(f"{number} ||| {text} ||| L= 1 ||| 0 ||| {'0-0' if text else ''}".encode(), 1) for text in texts
        ),
    )
    for number, (source, texts) in enumerate(TEXTS)
]
CPU = Resources("cpu")


def rows(folder: Path, source: tuple[str, ...], hypothesis: tuple[str, ...]) -> np.ndarray:
    import torch

    (found,) = score_pairs([load_model(folder, torch.device("cpu"))], [(source, hypothesis)])
    return found[1].attention[0].numpy()


def test_traces_of_single_pairs(models: dict[str, Path]) -> None:
    values = Agreement(f"{models['forward']},{models['backward']}", CPU)(SENTENCES)
    place = 0
    for each in SENTENCES:
        for hypothesis in each.hypotheses:
            forward = rows(models["forward"], each.source, hypothesis)  # (J+1, I+2)
            backward = rows(models["backward"], each.source, hypothesis)  # (I+1, J+2)
            wanted = sum(
                forward[j, i + 1] * backward[i, j + 1]
                for j in range(len(hypothesis) + 1)
                for i in range(len(each.source) + 1)
            )
            least = max(1, min(len(hypothesis), len(each.source)))
            np.testing.assert_allclose(values[place], [wanted, wanted / least], rtol=1e-4)
            place += 1


def test_attention_on_links(models: dict[str, Path]) -> None:
    values = Links(str(models["forward"]), CPU)(SENTENCES)
    wanted = [rows(models["forward"], SENTENCES[0].source, text)[0, 1] for text in SENTENCES[0].hypotheses[:2]]
    np.testing.assert_allclose(values[:3, 0], [*wanted, 0], rtol=1e-4)


def test_a_model_reads_a_list_once_for_all_features(models: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What they give is what each gives that has the model for itself."""
    forward, backward = str(models["forward"]), str(models["backward"])
    asked = [f"neural:{forward}[worst,logprob]", f"neural:{backward}", f"agreement:{forward},{backward}"]
    requests = parse_requests([*asked, f"links:{forward}", f"neural:{forward}[entropy]"])
    alone = [request.load(Resources("cpu"))(SENTENCES) for request in requests]
    shared, read = Resources("cpu"), []
    features = [request.load(shared) for request in requests]
    for name in ("score_tree", "score_alone"):
        score = getattr(features_reader, name)
        monkeypatch.setattr(
            features_reader, name, lambda *given, name=name, score=score: read.append(name) or score(*given)
        )
    for feature, wanted in zip(features, alone, strict=True):
        np.testing.assert_allclose(feature(SENTENCES), wanted, atol=1e-6)
    assert read == ["score_tree", "score_alone"]
    np.testing.assert_allclose(features[0](SENTENCES[:1]), alone[0][:3], atol=1e-5)
    assert read == ["score_tree", "score_alone", "score_tree"]
    features[0](SENTENCES)
    assert parse_requests([f"neural:{forward}[known]"])[0].load(shared)(SENTENCES).shape == (4, 1)


def test_what_a_cache_does_not_know_is_read_once(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, read = Resources("cpu", cache=str(tmp_path / "cache")), []
    requests = parse_requests([f"neural:{models['forward']}", f"neural:{models['forward']}[worst]"])
    features = [request.load(shared) for request in [*requests, *parse_requests([f"links:{models['forward']}"])]]
    score = features_reader.score_tree
    monkeypatch.setattr(features_reader, "score_tree", lambda *given: read.append(given) or score(*given))
    for times in (1, 2):
        for feature in features:
            feature(SENTENCES)
        assert len(read) == 1, times


def test_models_that_do_not_fit(models: dict[str, Path], tmp_path: Path) -> None:
    forward, backward = str(models["forward"]), str(models["backward"])
    for argument, message in (
        (forward, "expected a forward and a backward model"),
        (f"{backward},{forward}", "expected a forward model, this is a backward one"),
    ):
        with pytest.raises(InputError, match=message):
            Agreement(argument, CPU)
    with pytest.raises(InputError, match="expected a forward model"):
        Links(backward, CPU)
    small = {"embedding": 4, "hidden": 4, "attention": 4, "updates": 1}
    files = [str(tmp_path / side) for side in ("s", "t")]
    for path in files:
        Path(path).write_text("a b\n" * 4)
    parallel = ParallelFiles(source=files[0], target=files[1])
    texts = TrainingFiles(corpus=parallel, dev=parallel)
    train_model(TrainingRequest("luong-global-dot", settings=small), texts, str(tmp_path / "after"), "cpu")
    with pytest.raises(
        InputError, match="after: expected a model on words, from left to right, with wiring 'attend-fi"
    ):
        Links(str(tmp_path / "after"), CPU)
    bare = [Candidates(0, ("x",), (("a",),), (parse_line(b"0 ||| a ||| L= 1 ||| 0", 1),))]
    with pytest.raises(InputError, match="the list has no word alignment"):
        Links(forward, CPU)(bare)
