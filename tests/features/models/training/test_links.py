import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save

from features import translation_table
from features.links import WIDTH, encoded_links
from features.models.config import ModelConfig
from features.models.folder import load_model
from features.models.network.lexicon import ENTRIES
from features.models.network.model import EncoderDecoder
from features.models.settings import Architecture, Training
from features.models.training import loop
from features.models.training.checkpoint import Run
from features.models.training.encoding import Segmentation, encode, links_of_subwords
from features.models.training.learner import Learner
from features.models.training.lexicon import counted_lexicon, estimated_lexicon
from features.models.training.loop import train
from features.models.training.preparation import Task
from features.models.training.request import TrainingFiles, TrainingRequest, train_model
from features.models.vocabulary import BEGIN, UNKNOWN, Vocabulary, build_vocabulary
from features.ragged import Ragged
from features.sentences import TokenPairs
from moses_io.alignment import Alignment
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles

LINKS = frozenset({(0, 1), (2, 0)})


def spread_links(source_sizes: list[int], target_sizes: list[int], right_to_left: bool) -> set[tuple[int, int]]:
    """Return `LINKS` as links between subwords in the second of two equal pairs. Sizes are subwords per word."""
    source, target = (
        Segmentation(Ragged.of([[7] * size for size in sizes * 2]), np.array([0, len(sizes), 2 * len(sizes)]))
        for sizes in (source_sizes, target_sizes)
    )
    return decoded(links_of_subwords(encoded_links([LINKS, LINKS]), source, target, right_to_left)[1])


def decoded(links: list[int]) -> set[tuple[int, int]]:
    return {divmod(link, WIDTH) for link in links}


def test_links_between_words_link_all_their_subwords() -> None:
    assert spread_links([1, 1, 1], [1, 1], False) == LINKS
    assert spread_links([2, 1, 1], [1, 3], False) == {(3, 0), *((i, j) for i in (0, 1) for j in (1, 2, 3))}


def test_a_reversed_target_has_reversed_links() -> None:
    assert spread_links([1, 1, 1], [1, 1], True) == {(0, 0), (2, 1)}
    assert spread_links([1, 1, 1], [1, 2], True) == {(0, 0), (0, 1), (2, 2)}


def test_encoded_subwords_have_the_links_of_their_words() -> None:
    pairs = [(["low", "newer"], ["lowest", "new", "zorb"])] * 5
    vocabulary = build_vocabulary([side for pair in pairs for side in pair], Training(bpe=25))
    config = ModelConfig("x", "forward", Architecture(), Training(bpe=25), right_to_left=True)
    network = EncoderDecoder(config.architecture, len(vocabulary), len(vocabulary))
    learner = Learner(config, Path(), network, vocabulary, vocabulary)
    (corpus,) = encode(pairs, [learner], encoded_links([frozenset({(0, 0), (1, 1)})] * 5))
    source, target = corpus.source[0], corpus.target[0]
    sizes = [len(vocabulary.encode([token])) for token in ("lowest", "new", "zorb")]
    assert max(sizes) > 1
    first = len(vocabulary.encode(["low"]))
    places = range(sizes[2] + sizes[1], sum(sizes)), range(sizes[2], sizes[2] + sizes[1])
    links = {(i, j) for i in range(first) for j in places[0]}
    assert decoded(corpus.links[0]) == links | {(i, j) for i in range(first, len(source)) for j in places[1]}
    assert [target[j] for j in reversed(places[0])] == vocabulary.encode(["lowest"])


def test_the_lexicon_is_over_tokens_of_the_network() -> None:
    vocabulary = Vocabulary(["a", "b"])
    config = ModelConfig("x", "forward", Architecture(), Training())
    network = EncoderDecoder(config.architecture, len(vocabulary), len(vocabulary))
    learner, pairs = Learner(config, Path(), network, vocabulary, vocabulary), [(["a", "zorb"], ["b", "a"])]
    counted = counted_lexicon(TokenPairs.of(pairs), encoded_links([frozenset({(0, 0), (1, 0)})]), learner)
    assert set(zip(*(each.tolist() for each in counted), strict=True)) == {
        (4, 5, 1.0), (UNKNOWN, 5, 1.0), (BEGIN, 4, 1.0),
    }  # fmt: skip
    estimated = estimated_lexicon(*encode(pairs, [learner]), len(pairs))
    assert set(zip(estimated.conditions, estimated.words, strict=True)) == {
        (condition, word) for condition in (4, UNKNOWN, BEGIN) for word in (4, 5)
    }


def test_the_lexicon_of_subwords_is_counted_from_their_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expected table is counted link by link, the tested one in blocks of two pairs."""
    monkeypatch.setattr(translation_table, "COUNTED", 2)
    rng = random.Random(1)
    words = ["".join(rng.choices("abcde", k=rng.randint(1, 6))) for _ in range(20)]
    pairs = [([rng.choice(words) for _ in range(4)], [rng.choice(words) for _ in range(n % 4)]) for n in range(9)]
    links = encoded_links([frozenset((rng.randrange(4), j) for j in range(n % 4) if j != 1) for n in range(9)])
    vocabulary = build_vocabulary([side for pair in pairs for side in pair], Training(bpe=20))
    config = ModelConfig("x", "forward", Architecture(), Training(bpe=20))
    network = EncoderDecoder(config.architecture, len(vocabulary), len(vocabulary))
    learner = Learner(config, Path(), network, vocabulary, vocabulary)
    (corpus,) = encode(pairs, [learner], links)
    counts = Counter[tuple[int, int]]()
    for left, right, known in zip(corpus.source, corpus.target, map(decoded, corpus.links), strict=True):
        counts.update((left[i], right[j]) for i, j in known)
        counts.update((token, BEGIN) for i, token in enumerate(left) if i not in {i for i, _ in known})
        counts.update((BEGIN, token) for j, token in enumerate(right) if j not in {j for _, j in known})
    totals = Counter[int]()
    for (condition, _), times in counts.items():
        totals[condition] += times
    found = counted_lexicon(TokenPairs.of(pairs), links, learner)
    assert {(one, other): p for one, other, p in zip(*(each.tolist() for each in found), strict=True)} == {
        (condition, word): times / totals[condition] for (condition, word), times in counts.items()
    }


def task(folder: Path, links: Sequence[Alignment], **settings: Any) -> Task:
    """Return the task of copying letters as capitals, with a lexicon and with pairs that are too long or empty."""
    rng = random.Random(1)
    sources = [[rng.choice("abcdef") for _ in range(rng.randint(0, 5))] for _ in range(60)]
    pairs = [(source, [word.upper() for word in source]) for source in sources]
    architecture = Architecture(embedding_size=4, hidden_size=5, attention_size=4, lexicon="bias")
    config = ModelConfig(
        "x", "forward", architecture, Training(**{"epochs": 2, "max_length": 4, "average_checkpoints": 2} | settings)
    )
    return Task([config], pairs, pairs[:20], folder, torch.device("cpu"), links)


def diagonal() -> list[Alignment]:
    return [frozenset((i, i) for i in range(len(source))) for source, _ in task(Path(), ()).corpus]


def test_links_of_excluded_pairs_are_excluded(tmp_path: Path) -> None:
    """Each letter has its capital as the only translation."""
    train(task(tmp_path / "model", diagonal(), epochs=1))
    model = load_model(tmp_path / "model", torch.device("cpu"))
    assert model.network.lexicon is not None
    source, target = model.source.encode("abcdef"), model.target.encode("ABCDEF")
    assert model.network.lexicon.words[source, 0].tolist() == target
    assert model.network.lexicon.probabilities[source].sum(dim=0).tolist() == [6.0, *[0.0] * (ENTRIES - 1)]


def test_links_are_reversed_for_a_backward_model(tmp_path: Path) -> None:
    """The corpus is das Haus / house, and the alignment file links Haus with house."""
    for name, text in (("de", "das Haus\n"), ("en", "house\n"), ("gdfa", "1-0\n")):
        (tmp_path / name).write_text(text)
    corpus = ParallelFiles(f"{tmp_path}/de", f"{tmp_path}/en", alignment=f"{tmp_path}/gdfa")
    settings = {
        "embedding_size": 2,
        "hidden_size": 3,
        "attention_size": 2,
        "epochs": 1,
        "min_frequency": 1,
        "lexicon": "mixture",
    }
    request = TrainingRequest("rnnsearch", backward=True, settings=settings)
    train_model(request, TrainingFiles(corpus, dev=corpus), str(tmp_path / "model"), "cpu")
    model = load_model(tmp_path / "model", torch.device("cpu"))
    assert model.network.lexicon is not None
    found_words = model.network.lexicon.words[[*model.source.encode(["house"]), BEGIN], 0].tolist()
    assert found_words == model.target.encode(["Haus", "das"])


@pytest.mark.parametrize("links", [[], diagonal()], ids=["estimated", "counted"])
def test_a_killed_training_continues_with_its_lexicon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: list[Alignment]
) -> None:
    finish, calls = loop._finish_epoch, iter(range(1, 99))

    def interrupt_second_epoch(run: Run, measured: dict[str, float]) -> None:
        if next(calls) == 2:
            raise KeyboardInterrupt
        finish(run, measured)

    guided = {"guided_alignment": 1.0 if links else 0.0, "epochs": 3}
    train(task(tmp_path / "whole", links, **guided))
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop, "_finish_epoch", interrupt_second_epoch)
        train(task(tmp_path / "killed", links, **guided))
    train(task(tmp_path / "killed", links, **guided), resume=True)
    whole, killed = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed"))
    assert whole == killed


def test_resuming_with_other_links_is_an_error(tmp_path: Path) -> None:
    train(task(tmp_path / "model", diagonal(), epochs=1))
    for links in ([], [frozenset[tuple[int, int]]()] * 60):
        with pytest.raises(InputError, match="was trained on other text, or started from another model"):
            train(task(tmp_path / "model", links, epochs=1), resume=True)


def test_a_model_keeps_the_lexicon_of_its_initial_model(tmp_path: Path) -> None:
    train(task(tmp_path / "first", diagonal(), epochs=1))
    train(replace(task(tmp_path / "then", [frozenset()] * 60, epochs=1), start=tmp_path / "first"))
    words = [load_file(tmp_path / name / "model.safetensors")["lexicon.words"] for name in ("first", "then")]
    assert torch.equal(*words)


def test_wrong_word_indices_or_types_of_a_lexicon_are_errors(tmp_path: Path) -> None:
    train(task(tmp_path / "model", diagonal(), epochs=1))
    path = tmp_path / "model" / "model.safetensors"
    tensors = load_file(path)
    for number in (-1, 10):
        tensors["lexicon.words"][4, 0] = number
        path.write_bytes(save(tensors))
        with pytest.raises(
            InputError, match=r"of another model \(tensor 'lexicon\.words' has a value that is not a word"
        ):
            load_model(tmp_path / "model", torch.device("cpu"))
    path.write_bytes(save(tensors | {"lexicon.words": tensors["lexicon.words"].long()}))
    with pytest.raises(InputError, match=r"'lexicon\.words' is I64 \[10, 20\], expected I32 \[10, 20\]"):
        load_model(tmp_path / "model", torch.device("cpu"))
