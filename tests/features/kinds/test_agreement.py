from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import features.reader as features_reader
from features.arrays import Array
from features.feature import Resources, Sentence
from features.feature_set import FeatureSet
from features.kinds.neural import _trace
from features.models.folder import load_model
from features.models.scoring.pairs import score_pairs
from features.models.training.request import TrainingFiles, TrainingRequest, train_model
from features.request import parse_requests
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles
from moses_io.hypothesis import parse_line

TEXTS = [("die Zeitung", ["the newspaper .", "the", ""]), ("im Wald gibt es eine Lampe .", ["there is a lamp ."])]
SENTENCES = [
    Sentence(
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


def load(text: str) -> FeatureSet:
    return FeatureSet(parse_requests([text]), CPU)


def values_of(features: FeatureSet, sentences: Sequence[Sentence] = SENTENCES) -> list[Array]:
    return [column.values for column in features.score(sentences).columns]


def rows(folder: Path, source: tuple[str, ...], hypothesis: tuple[str, ...]) -> np.ndarray:
    import torch

    (batch,) = score_pairs([load_model(folder, torch.device("cpu"))], [(source, hypothesis)])
    return batch[1].attention[0].numpy()


def test_agreement_is_the_trace_of_both_attention_matrices(models: dict[str, Path]) -> None:
    values = values_of(load(f"agreement:{models['forward']},{models['backward']}"))[0]
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
            length = min(len(hypothesis), len(each.source)) + 1
            np.testing.assert_allclose(values[place], [wanted, wanted / length], rtol=1e-4)
            place += 1


@pytest.mark.parametrize("words", [0, 1, 3])
def test_identical_alignments_have_the_maximum_trace(words: int) -> None:
    """The trace is min(I, J), `</s>` included. Divided by this length it is 1."""
    rows = np.eye(words + 1, words + 2, k=1, dtype=np.float32)  # word i is aligned with word i, `</s>` with `</s>`
    assert _trace(rows, rows) == (words + 1, 1)


def test_links_is_the_attention_on_the_word_alignment(models: dict[str, Path]) -> None:
    values = values_of(load(f"links:{models['forward']}"))[0]
    wanted = [rows(models["forward"], SENTENCES[0].source, text)[0, 1] for text in SENTENCES[0].hypotheses[:2]]
    np.testing.assert_allclose(values[:3, 0], [*wanted, 0], rtol=1e-4)


def test_features_of_the_same_model_share_one_pass(models: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are the same as with a separate feature set per feature."""
    forward, backward = str(models["forward"]), str(models["backward"])
    texts = [f"neural:{forward}[worst,logprob]", f"neural:{backward}", f"agreement:{forward},{backward}"]
    requests = parse_requests([*texts, f"links:{forward}", f"neural:{forward}[entropy]"])
    apart = [values_of(FeatureSet([request], CPU))[0] for request in requests]
    together, calls = FeatureSet(requests, CPU), list[str]()
    for name in ("score_tree", "score_one_by_one"):
        score = getattr(features_reader, name)
        monkeypatch.setattr(
            features_reader,
            name,
            lambda *needs, name=name, score=score, **options: calls.append(name) or score(*needs, **options),
        )
    for values, own in zip(values_of(together), apart, strict=True):
        np.testing.assert_allclose(values, own, atol=1e-6)
    assert calls == ["score_tree", "score_one_by_one"]
    np.testing.assert_allclose(values_of(together, SENTENCES[:1])[0], apart[0][:3], atol=1e-5)
    assert calls == ["score_tree", "score_one_by_one"] * 2


def test_only_values_missing_from_the_cache_are_computed(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new value requires scoring all candidates again. Cached values require no scoring."""
    resources, read = Resources("cpu", cache=str(tmp_path / "cache")), list[int]()
    score = features_reader.score_tree

    def count(models: object, sentences: Sequence[Sentence], *needs: object) -> object:
        read.append(sum(len(each.hypotheses) for each in sentences))
        return score(models, sentences, *needs)  # type: ignore[arg-type]

    monkeypatch.setattr(features_reader, "score_tree", count)
    both = parse_requests([f"neural:{models['forward']}", f"neural:{models['forward']}[worst]"])
    results = []
    for requests, new in ((both[:1], [4]), (both, [4]), (both, []), (both[1:], [])):
        results.append(values_of(FeatureSet(requests, resources)))
        assert read == new
        read.clear()
    assert np.array_equal(results[1][0], results[2][0]) and np.array_equal(results[2][1], results[3][0])
    more = [replace(SENTENCES[0], hypotheses=(("new",), *SENTENCES[0].hypotheses)), *SENTENCES]
    longer = values_of(FeatureSet(both, resources), more)
    assert read == [1]
    assert np.array_equal(longer[0][[1, 2, 3, 4, 5, 6, 7]], results[1][0][[0, 1, 2, 0, 1, 2, 3]])
    values_of(FeatureSet(both, replace(resources, precision="bf16")))
    values_of(FeatureSet(both, resources), [replace(SENTENCES[0], source=("other",))])
    assert read == [1, 4, 3]
    attending = [*both, *parse_requests([f"links:{models['forward']}"])]
    np.testing.assert_allclose(values_of(FeatureSet(attending, resources))[0], results[0][0], atol=1e-5)


def test_incompatible_models_are_errors(models: dict[str, Path], tmp_path: Path) -> None:
    forward, backward = str(models["forward"]), str(models["backward"])
    for argument, message in (
        (forward, "expected a forward and a backward model"),
        (f"{backward},{forward}", "expected a forward model, this is a backward one"),
    ):
        with pytest.raises(InputError, match=message):
            load(f"agreement:{argument}")
    with pytest.raises(InputError, match="expected a forward model"):
        load(f"links:{backward}")
    small = {"embedding_size": 4, "hidden_size": 4, "attention_size": 4, "updates": 1}
    files = [str(tmp_path / side) for side in ("s", "t")]
    for path in files:
        Path(path).write_text("a b\n" * 4)
    parallel = ParallelFiles(source=files[0], target=files[1])
    texts = TrainingFiles(corpus=parallel, dev=parallel)
    train_model(TrainingRequest("luong-global-dot", settings=small), texts, str(tmp_path / "after"), "cpu")
    with pytest.raises(
        InputError, match="after: expected a left-to-right model on words with decoder 'attend-first', so"
    ):
        load(f"links:{tmp_path / 'after'}")
    bare = [Sentence(0, ("x",), (("a",),), (parse_line(b"0 ||| a ||| L= 1 ||| 0", 1),))]
    with pytest.raises(InputError, match=r":1: feature 'links': no word alignment here. Decode with"):
        values_of(load(f"links:{forward}"), bare)
