"""Translation with beam search: scores, replacement of unknown words, and batches."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from features.feature import Resources, Sentence
from features.models.decoding.search import Beam, Ended, search
from features.models.decoding.translator import Replacement, Translation, Translator
from features.models.device import find_device
from features.models.folder import Model, load_model
from features.models.scoring.pairs import score_one_by_one
from features.models.training.request import TrainingFiles, TrainingRequest, train_model
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles, read_lines, tokens

Write = Callable[[str, str | bytes], Path]
Models = dict[str, Path]


@pytest.fixture(scope="module")
def kinds(models: Models, tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Models:
    """The models of `models`, and a right-to-left model and a subword model that are trained for two epochs."""
    folder, corpus = tmp_path_factory.mktemp("kinds"), models["forward"].parent
    files = TrainingFiles(
        corpus=ParallelFiles(source=str(corpus / "train.de"), target=str(corpus / "train.en")),
        dev=ParallelFiles(source=str(sample / "test.de"), target=str(sample / "test.en")),
    )
    settings = {"embedding_size": 16, "hidden_size": 16, "attention_size": 16, "epochs": 2, "learning_rate": 0.01}
    mirrored = TrainingRequest("rnnsearch", right_to_left=True, settings=settings)
    subwords = TrainingRequest("yang-window1", settings=settings | {"bpe": 200})
    train_model(mirrored, files, str(folder / "right-to-left"), "cpu")
    train_model(subwords, files, str(folder / "subwords"), "cpu")
    return {**models, **{name: folder / name for name in ("right-to-left", "subwords")}}


@pytest.fixture(scope="module")
def sources(sample: Path) -> list[tuple[str, ...]]:
    return [*(tuple(tokens(line)) for line in read_lines(str(sample / "test.de"))[:20]), (), ("Zyklotron",) * 3]


def translated(
    folders: list[Path], sources: list[tuple[str, ...]], beam: Beam, unknown: str = "copy"
) -> list[list[Translation]]:
    translator = Translator([str(folder) for folder in folders], beam, Replacement(unknown), Resources("cpu"))
    return list(translator.translate(sources))


@pytest.mark.parametrize("kind", ["forward", "right-to-left", "subwords"])
@pytest.mark.parametrize("unknown", ["copy", "keep"])
def test_scores_equal_those_of_the_scorer(
    kind: str, unknown: str, kinds: Models, sources: list[tuple[str, ...]]
) -> None:
    model = load_model(kinds[kind], find_device("cpu"))
    translations = translated([kinds[kind]], sources, Beam(4, 3), unknown)
    for number, (source, each) in enumerate(zip(sources, translations, strict=True)):
        texts = tuple(one.tokens for one in each)
        assert 1 <= len(set(texts)) == len(texts) <= 3
        wanted = score_one_by_one([model], [Sentence(number, source, texts)], ["logprob"]).values["logprob"]
        np.testing.assert_allclose([one.log_prob for one in each], wanted, atol=1e-4)
        assert [one.value for one in each] == sorted((one.log_prob for one in each), reverse=True)
    assert [one.tokens for one in translations[sources.index(())]] == [()]


@pytest.mark.parametrize("unknown", ["copy", "keep"])
def test_a_backward_model_translates_into_the_source_language(unknown: str, models: Models, sample: Path) -> None:
    """The log-probability of a translation equals that of `score` for the translation as source."""
    texts = [tuple(tokens(line)) for line in read_lines(str(sample / "test.en"))[:10]]
    model = load_model(models["backward"], find_device("cpu"))
    beam, backward = Beam(4, 3, unknown=unknown == "keep"), Replacement(unknown, backward=True)
    translator = Translator([str(models["backward"])], beam, backward, Resources("cpu"), backward=True)
    for text, translations in zip(texts, translator.translate(texts), strict=True):
        sources = [Sentence(number, each.tokens, (text,)) for number, each in enumerate(translations)]
        expected = score_one_by_one([model], sources, ["logprob"]).values["logprob"]
        np.testing.assert_allclose([each.log_prob for each in translations], expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["forward", "subwords"])
def test_translations_can_be_twice_as_long_as_the_input(
    kind: str, kinds: Models, sources: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is in words or subwords, depending on the model. It stops models that never predict `</s>`."""
    model = load_model(kinds[kind], find_device("cpu"))
    read = [len(model.source.encode(source)) for source in sources]
    assert (sum(read) > sum(map(len, sources))) == (kind == "subwords")
    longest: list[int] = []

    def searched(models: list[Model], batch: list[tuple[str, ...]], limits: list[int], beam: Beam) -> list[list[Ended]]:
        longest.extend(limits)
        return search(models, batch, limits, beam)

    monkeypatch.setattr("features.models.decoding.translator.search", searched)
    translated([kinds[kind]], sources, Beam(1))
    assert sorted(longest) == sorted(2 * length + 10 if length else 0 for length in read)


def test_translations_do_not_depend_on_batches(models: Models, sources: list[tuple[str, ...]]) -> None:
    together = translated([models["forward"]], sources, Beam(3, 3, normalize=True))
    turned = translated([models["forward"], models["forward"]], sources[::-1], Beam(3, 3, normalize=True))
    for some, others in zip(together, turned[::-1], strict=True):
        assert [one.tokens for one in some] == [one.tokens for one in others]
        np.testing.assert_allclose([one[1:] for one in some], [one[1:] for one in others], atol=1e-4)


def test_out_of_memory_reduces_the_batch(
    models: Models, sources: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = translated([models["forward"]], sources, Beam(4, 2))
    sizes = []

    def scarce(members: list[Model], some: list[tuple[str, ...]], limits: list[int], beam: Beam) -> list[list[Ended]]:
        sizes.append(len(some))
        if len(some) > most:
            raise MemoryError
        return search(members, some, limits, beam)

    monkeypatch.setattr("features.models.decoding.translator.search", scarce)
    most = 6
    parts = translated([models["forward"]], sources, Beam(4, 2))
    assert [[one.tokens for one in each] for each in parts] == [[one.tokens for one in each] for each in whole]
    assert max(sizes) > most
    most = 0
    with pytest.raises(InputError, match=r"out of memory for a source of \d+ words. Use a smaller beam"):
        translated([models["forward"]], sources, Beam(4, 2))


def test_bfloat16_gives_similar_scores(models: Models, sources: list[tuple[str, ...]]) -> None:
    exact = translated([models["forward"]], sources, Beam(1), "keep")
    translator = Translator([str(models["forward"])], Beam(1), Replacement("keep"), Resources("cpu", "bf16"))
    assert translator.signature.endswith("|precision:bf16")
    lowered = list(translator.translate(sources))
    same = [(a.log_prob, b.log_prob) for [a], [b] in zip(exact, lowered, strict=True) if a.tokens == b.tokens]
    assert len(same) > len(sources) / 2
    np.testing.assert_allclose(*zip(*same, strict=True), atol=0.2)


def test_unknown_words_are_replaced_by_attended_source_words(
    pointed: Models, sources: list[tuple[str, ...]], write: Write
) -> None:
    model = load_model(pointed["forward"], find_device("cpu"))
    outputs = [[["a", "<unk>", "is", "<unk>"], ["a", "man"]], [["<unk>"] * 3, ["the"]]]
    read = sources[:2]
    sentences = [Sentence(number, source, (tuple(outputs[number][0]),)) for number, source in enumerate(read)]
    rows = score_one_by_one([model], sentences, [], attention=True).attention
    attended = [source[place] for source, each in zip(read, rows, strict=True) for place in each[:, 1:-1].argmax(1)]
    wanted = [["a", attended[1], "is", attended[3]], attended[5:8]]
    copied = Replacement("copy").replace([model], read, outputs)
    assert copied == [[tuple(wanted[0]), ("a", "man")], [tuple(wanted[1]), ("the",)]]
    assert Replacement("keep").replace([model], read, outputs) == [[tuple(text) for text in each] for each in outputs]
    first = attended[5]
    table = write("lex.f2e", f"no {first} 0.3\nyes {first} 0.6\nNULL {attended[1]} 1\n")
    looked_up = Replacement(str(table)).replace([model], read, outputs)
    assert first != attended[1] and looked_up[0][0] == copied[0][0]
    assert looked_up[1][0] == tuple("yes" if word == first else word for word in wanted[1])


def test_models_and_tables_of_the_wrong_direction_are_errors(kinds: Models, write: Write) -> None:
    with pytest.raises(InputError, match=r"backward: a backward model, which predicts the source. Use forward models"):
        translated([kinds["backward"]], [], Beam(1))
    with pytest.raises(InputError, match=r"forward: a forward model, which predicts the target. Use backward models"):
        Translator([str(kinds["forward"])], Beam(1), Replacement("copy"), Resources("cpu"), backward=True)
    with pytest.raises(InputError, match=r"lex.f2e: the table of the other direction, expected lex.e2f$"):
        Replacement("lex.f2e", backward=True)
    with pytest.raises(InputError, match=r"right-to-left: another order of words than .*forward. Models that"):
        translated([kinds["forward"], kinds["right-to-left"]], [], Beam(1))
    with pytest.raises(InputError, match=r"lex.e2f: the table of the other direction, expected lex.f2e$"):
        translated([kinds["forward"]], [], Beam(1), "lex.e2f")
    with pytest.raises(InputError, match=r"lex.f2e:1: expected 'word word probability', found 'a b'"):
        translated([kinds["forward"]], [], Beam(1), str(write("lex.f2e", "a b\n")))
