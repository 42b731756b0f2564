"""Vocabularies of words and of subwords."""

import io
import random
from collections import Counter
from pathlib import Path

import pytest
import sentencepiece

from features.models.settings import Training
from features.models.training.preparation import vocabulary_of
from features.models.vocabulary import (
    SPECIAL,
    UNKNOWN,
    BpeDropout,
    Subwords,
    Vocabulary,
    build_vocabulary,
    learn,
    load_vocabulary,
)
from features.sentences import Sentences
from moses_io.files.errors import InputError

SENTENCES = [["low", "lower", "lowest", "new", "newer", "\u00a0x", "<s>"]] * 5
WORDS = ["low", "lower", "lowest", "new", "newer", "newest"]


def test_words_are_ranked_by_frequency_and_read_back(tmp_path: Path) -> None:
    sentences = [["b", "a", "b", "<s>", "a\r", "a\r"], ["a", "c", "b\u00a0\udce9", "b\u00a0\udce9", "<s>"]]
    built = build_vocabulary(sentences, Training())
    assert built.words == (*SPECIAL, "a", "b", "b\u00a0\udce9")
    assert built.encode(["b", "c", "<s>", "a\r"]) == [5, UNKNOWN, UNKNOWN, UNKNOWN]
    built.save(tmp_path, "source")
    assert load_vocabulary(tmp_path, "source", False) == built
    assert build_vocabulary(sentences, Training(vocabulary_size=2)).words == (*SPECIAL, "a", "b")
    Vocabulary(["x", "x"]).save(tmp_path, "twice")
    with pytest.raises(InputError, match="the word occurs twice"):
        load_vocabulary(tmp_path, "twice", False)


def test_subwords_of_words_are_encoded_and_read_back(tmp_path: Path) -> None:
    built = build_vocabulary(SENTENCES, Training(bpe=30))
    tokens = ["newer", "low", "\udce9", "日", ""]
    numbers = built.encode(tokens)
    assert "".join(built.words[number] for number in numbers).startswith("▁newer▁low")
    assert numbers.count(UNKNOWN) == 3
    built.save(tmp_path, "source")
    again = load_vocabulary(tmp_path, "source", True)
    assert again == built and again.encode(tokens) == numbers


def test_a_vocabulary_of_another_subword_model_is_an_error(tmp_path: Path) -> None:
    build_vocabulary(SENTENCES, Training(bpe=30)).save(tmp_path, "source")
    build_vocabulary([["ein", "anderer", "Satz"]], Training(bpe=15)).save(tmp_path, "target")
    (tmp_path / "target.vocabulary").write_bytes((tmp_path / "source.vocabulary").read_bytes())
    with pytest.raises(InputError, match=r"target\.vocabulary:[0-9]+: '.*' is not a subword of target\.bpe"):
        load_vocabulary(tmp_path, "target", True)


@pytest.mark.usefixtures("progress")
def test_a_small_text_has_fewer_subwords_than_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    most = vocabulary_of(Sentences.of(SENTENCES), Training(bpe=4000))
    assert "the text has" in capsys.readouterr().err and len(most.encode(["lowest"])) == 1


def test_fewer_subwords_than_characters_are_an_error() -> None:
    with pytest.raises(InputError, match="setting 'bpe': sentencepiece cannot learn 5 subwords here: Vocabulary size"):
        build_vocabulary(SENTENCES, Training(bpe=5))


def test_a_damaged_or_missing_subword_model_is_an_error(tmp_path: Path) -> None:
    build_vocabulary(SENTENCES, Training(bpe=30)).save(tmp_path, "source")
    (tmp_path / "source.bpe").write_bytes(b"x")
    with pytest.raises(InputError, match=r"source\.bpe: damaged, or not a sentencepiece model"):
        load_vocabulary(tmp_path, "source", True)
    (tmp_path / "source.bpe").unlink()
    with pytest.raises(InputError, match=r"source\.bpe: No such file"):
        load_vocabulary(tmp_path, "source", True)


def test_bpe_dropout_varies_the_segmentation_and_keeps_the_text() -> None:
    built = build_vocabulary([WORDS] * 5, Training(bpe=30, bpe_dropout=0.5))
    chances = [BpeDropout(0.5, random.Random(seed)) for seed in (1, 1, 2)]
    cuts = [[tuple(built.encode(WORDS, chance)) for _ in range(200)] for chance in chances]
    assert cuts[0] == cuts[1] != cuts[2]
    assert len(set(cuts[0])) > 100
    for cut in cuts[0]:
        assert "".join(built.words[number] for number in cut) == "▁" + "▁".join(WORDS)
    assert built.encode(WORDS, BpeDropout(0.0, random.Random())) == built.encode(WORDS)
    plain = build_vocabulary([WORDS] * 5, Training(bpe=30))
    assert set(plain.words) < set(built.words)
    assert [built.words[number] for number in built.encode(WORDS)] == [
        plain.words[number] for number in plain.encode(WORDS)
    ]


def test_subwords_from_counts_equal_those_from_sentences(sample: Path) -> None:
    lines = (sample / "train.de").read_text(encoding="utf-8").split("\n")[:300]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=400,
        character_coverage=1.0,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    assert learn(Counter(" ".join(lines).split(" ")), 400).all_subwords == Subwords(model.getvalue()).all_subwords


def test_subwords_without_dropout_equal_those_of_sentencepiece(sample: Path) -> None:
    words = sorted(set((sample / "train.de").read_text(encoding="utf-8").split()))
    subwords = learn(dict.fromkeys(words, 1), 600)
    rng = random.Random(2)
    strange = ["".join(rng.choices("abe\u00df\u65e5\u672c\u2581-\x00", k=rng.randint(1, 8))) for _ in range(500)]
    assert len(words) > 300
    for word in [*words, *strange, "\u2581", "\u2581\u2581", "\udce9"]:
        assert subwords.segment_randomly(word, BpeDropout(0.0, rng)) == subwords.segment(word)
