"""Options of commands: each reaches the function that other tests check in detail."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from safetensors.numpy import load_file

from features.models.config import read_config
from features.models.training.request import TrainingFiles, TrainingRequest, train_model
from moses_io.files.errors import InputError
from moses_io.files.text import ParallelFiles
from moses_io.nbest import read_nbest
from moses_io.weights import read_weights
from rerank.commands.arguments import read_settings

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, str | bytes], Path]


@pytest.fixture(scope="module")
def unsure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a corpus whose targets have random lengths and many words that occur once, and so are unknown."""
    folder, rng = tmp_path_factory.mktemp("unsure"), random.Random(1)
    lengths = [rng.randint(1, 5) for _ in range(200)]
    targets = [
        ["a" if rng.random() < 0.25 else f"u{row}.{column}" for column in range(length)]
        for row, length in enumerate(lengths)
    ]
    (folder / "source").write_text("".join(f"{' '.join(rng.choices('xyz', k=3))}\n" for _ in lengths))
    (folder / "target").write_text("".join(f"{' '.join(words)}\n" for words in targets))
    corpus = ParallelFiles(source=str(folder / "source"), target=str(folder / "target"))
    settings = {"embedding_size": 8, "hidden_size": 8, "attention_size": 8, "epochs": 3, "learning_rate": 0.01}
    files = TrainingFiles(corpus=corpus, dev=corpus)
    train_model(TrainingRequest("rnnsearch", settings=settings), files, str(folder / "model"), "cpu")
    return folder / "model"


def test_no_normalize_ranks_translations_by_total_log_probability(command: Command, unsure: Path, write: Write) -> None:
    translate = ("translate", unsure, "--source", write("source", "x y z\nz z\n"), "--nbest", 6, "--unknown", "keep")
    lists = {}
    for option in ("--normalize", "--no-normalize"):
        status, out, err = command(*translate, option)
        assert status == 0, err
        assert ("|normalize:yes|" in err) == (option == "--normalize")
        lists[option] = list(read_nbest(str(write("list", out))))
    for option, sentences in lists.items():
        for sentence in sentences:
            totals = [hypothesis.dense[0][1][0] for hypothesis in sentence.hypotheses]
            lengths = [len(hypothesis.text.split()) + 1 for hypothesis in sentence.hypotheses]
            means = [total / length for total, length in zip(totals, lengths, strict=True)]
            in_order = [values == sorted(values, reverse=True) for values in (totals, means)]
            assert in_order == [option == "--no-normalize", option == "--normalize"]


def test_a_table_translates_unknown_words(command: Command, unsure: Path, write: Write) -> None:
    """In the table, the best translation of a word is the word in brackets."""
    table = write("lex.f2e", "".join(f"[{word}] {word} 0.6\nother {word} 0.4\n" for word in "xy"))
    translate = ("translate", unsure, "--source", write("source", "x y\ny x y x\nx z z\n"), "--beam", 1)
    kept, copied, translated = (
        command(*translate, "--unknown", value)[1].decode().split() for value in ("keep", "copy", table)
    )
    assert "<unk>" in kept
    rows = list(zip(kept, copied, translated, strict=True))
    assert [row for row in rows if row[0] != "<unk>"] == [(each,) * 3 for each in kept if each != "<unk>"]
    found = {(copy, translation) for token, copy, translation in rows if token == "<unk>"}
    assert found <= {("x", "[x]"), ("y", "[y]"), ("z", "z")} and len(found) > 1


def test_evaluate_tokenizes_like_sacrebleu(command: Command, write: Write) -> None:
    lines, references = ["The old house, is red.", "It's here!"], ["The old house is red.", "It's there!"]
    system, reference = (
        write(name, "".join(f"{line}\n" for line in text)) for name, text in (("s", lines), ("r", references))
    )
    scores = {}
    for tokenizer in ("none", "13a", "char"):
        option = () if tokenizer == "none" else ("--tokenize", tokenizer)
        status, out, err = command("evaluate", system, "--reference", reference, "--json", *option)
        assert status == 0, err
        evaluation = json.loads(out)
        scores[tokenizer] = evaluation["systems"][0]["BLEU"]["score"]
        bleu = sacrebleu.corpus_bleu(lines, [references], tokenize=tokenizer)
        assert scores[tokenizer] == pytest.approx(bleu.score)
    assert len(set(scores.values())) == 3


def test_rerank_writes_as_many_candidates_as_requested(command: Command, write: Write, tmp_path: Path) -> None:
    nbest = write("list", "0 ||| a ||| L= 1\n0 ||| b ||| L= 3\n0 ||| c ||| L= 2\n1 ||| d ||| L= 1\n")
    rerank = ("rerank", nbest, "--weights", write("weights", "L= 1\n"))
    status, out, _ = command(*rerank, "--nbest", tmp_path / "best", "--nbest-size", 2)
    texts = [line.split(" ||| ")[:2] for line in (tmp_path / "best").read_text().splitlines()]
    assert (status, out, texts) == (0, b"b\nd\n", [["0", "b"], ["0", "c"], ["1", "d"]])
    status, out, err = command(*rerank, "--nbest-size", 2)
    assert (status, out, "--nbest-size needs --nbest" in err) == (2, b"", True)


def train(command: Command, write: Write, preset: str, *options: object) -> Path:
    """Train a small model on four pairs and return its folder."""
    source, target = write("train.de", "das Haus\nein Haus\n" * 2), write("train.en", "the house\na house\n" * 2)
    folder = source.parent / f"model-{len(list(source.parent.glob('model-*')))}"
    files = ("--source", source, "--target", target, "--dev-source", source, "--dev-target", target)
    sizes = ("embedding_size=16", "hidden_size=16", "attention_size=16", "updates=1", "epochs=1", "min_frequency=1")
    status, _, err = command(
        "train", "--preset", preset, *files, "--output", folder, "--device", "cpu", *options, "--set", *sizes
    )
    assert status == 0, err
    return folder


def test_train_reads_a_target_from_right_to_left(command: Command, write: Write) -> None:
    """In both directions, the predicted side is reversed."""
    for backward in ((), ("--backward",)):
        config = read_config(train(command, write, "rnnsearch", "--right-to-left", *backward))
        assert (config.right_to_left, config.direction) == (True, "backward" if backward else "forward")
    assert not read_config(train(command, write, "rnnsearch")).right_to_left


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (["=3"], "--set =3: expected KEY=NUMBER"),
        (["climbs=x"], "--set climbs=x: expected KEY=NUMBER"),
        (["climbs=10", "climbs=20"], "--set climbs=20: climbs occurs twice"),
    ],
)
def test_invalid_settings_are_errors(items: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_settings(items, "KEY=NUMBER")


def test_paper_sizes_are_the_settings_of_the_paper(command: Command, write: Write) -> None:
    """Luong et al. (2015, 4.1): 4 layers, SGD with learning rate 1, batches of 128. `--set` changes sizes."""
    ours, papers = (
        read_config(train(command, write, "luong-global-dot", *option)) for option in ((), ("--paper-sizes",))
    )
    assert (papers.architecture.decoder_layers, papers.training.optimizer) == (4, "sgd")
    assert (papers.training.learning_rate, papers.training.batch_size) == (1, 128)
    assert (ours.architecture.decoder_layers, papers.architecture.hidden_size) == (1, 16)


def test_training_starts_from_a_pretrained_model(command: Command, write: Write) -> None:
    """After one update with a very small learning rate, the weights are almost those of the pretrained model."""
    first = train(command, write, "cohn-align")
    tuned = train(command, write, "cohn-align-glofer-pre", "--pretrained-model", first, "--set", "learning_rate=1e-9")
    alone = train(command, write, "cohn-align-glofer", "--set", "seed=2")
    one, two, other = (load_file(folder / "model.safetensors") for folder in (first, tuned, alone))
    name = "decoder.attention.score.out.weight"
    np.testing.assert_allclose(one[name], two[name], atol=1e-6)
    assert not np.allclose(one[name], other[name], atol=1e-3)


def test_training_tags_sources_of_synthetic_pairs(command: Command, write: Write) -> None:
    """The vocabulary of a model has the tag, except with `tag=false`."""
    sides = (write("mono.de", "zwei Birnen\n"), write("mono.en", "two pears\n"))
    files = ("--synthetic-source", sides[0], "--synthetic-target", sides[1])
    for options, tagged in ((files, True), ((*files, "--set", "tag=false"), False), ((), False)):
        folder = train(command, write, "rnnsearch", *options)
        assert ("<BT>" in (folder / "source.vocabulary").read_text().split("\n")) == tagged


def test_convert_options(command: Command, write: Write, tmp_path: Path) -> None:
    """The second list has the features of the first, and another label and words instead of subwords."""
    dev, test = write("dev", "0 ||| a ||| lm=1 tm=2 ||| -1\n"), write("test", "0 ||| b@@ c ||| lm=3 ||| -4\n")
    convert = ("convert", "--label", "Cdec", "--filter", "debpe")
    assert command(*convert, dev, "--output", tmp_path / "dev.nbest")[0] == 0
    status, _, err = command(*convert, test, "--output", tmp_path / "test.nbest", "--like", tmp_path / "dev.nbest")
    assert (status, "no candidate has Cdectm" in err) == (0, True), err
    assert (tmp_path / "dev.nbest").read_text() == "0 ||| a ||| Cdec= -1 Cdeclm= 1 Cdectm= 2 ||| -1\n"
    assert (tmp_path / "test.nbest").read_text() == "0 ||| bc ||| Cdec= -4 Cdeclm= 3 Cdectm= 0 ||| -4\n"


def test_a_ridge_holds_weights_near_the_initial_weights(command: Command, write: Write) -> None:
    """The initial weights choose the wrong candidate. So do almost all weights near them."""
    nbest = write("list", "0 ||| a b c d ||| Good= 1 Bad= -1 ||| 0\n0 ||| a b c e d ||| Good= -1 Bad= 1 ||| 0\n")
    initial = write("initial", "[weight]\nGood= 0.9\nBad= 1\n")
    tune = ("tune", nbest, "--reference", write("reference", "a b c d\n"), "--initial-weights", initial)
    ratios = []
    for ridge in (0, 1):
        status, out, err = command(*tune, "--tuner", "kbmira", "--runs", 1, "--set", "C=1", "--ridge", ridge)
        assert (status, f"|ridge:{ridge}|" in err) == (0, ridge > 0), err
        weights = read_weights(str(write("weights", out)))
        ratios.append(weights["Good"][0] / weights["Bad"][0])
    assert ratios[0] > ratios[1] > 1, ratios


@pytest.mark.parametrize("name", ["score", "translate"])
def test_bfloat16_changes_scores_a_little(command: Command, models: dict[str, Path], write: Write, name: str) -> None:
    source, values = write("source", "die Zeitung im Wald\n"), []
    words = ("translate", models["forward"], "--nbest", 1, "--beam", 1)
    if name == "score":
        nbest = write("list", "0 ||| the newspaper in the wood ||| L= 1 ||| 1\n")
        words = ("score", nbest, "--feature", f"NMT=neural:{models['forward']}")
    for precision in ("fp32", "bf16"):
        status, out, err = command(*words, "--source", source, "--device", "cpu", "--precision", precision)
        assert (status, "|precision:bf16" in err) == (0, precision == "bf16"), err
        (line,) = read_nbest(str(write("made", out)))
        values.append(dict(line.hypotheses[0].dense)["NMT"][0])
    assert values[0] != values[1] == pytest.approx(values[0], rel=0.05)


def test_the_scale_of_consensus_and_posteriors(command: Command, write: Write) -> None:
    """Totals that differ by log 3 give the probabilities 3/4 and 1/4, with the scale 2 they are 9/10 and 1/10."""
    nbest = write("list", "0 ||| a ||| L= 1 ||| 1.0986123\n0 ||| b ||| L= 1 ||| 0\n")
    features = {"One": "posteriors", "Two": "posteriors:2", "First": "consensus:bleu", "Second": "consensus:bleu,2"}
    options = [word for label, kind in features.items() for word in ("--feature", f"{label}={kind}")]
    status, out, err = command("score", nbest, "--source", write("source", "x\n"), *options)
    assert status == 0, err
    (listed,) = read_nbest(str(write("scored", out)))
    first, second = (dict(hypothesis.dense) for hypothesis in listed.hypotheses)
    assert (first["One"][0], second["One"][0]) == pytest.approx((3 / 4, 1 / 4))
    assert (first["Two"][0], second["Two"][0]) == pytest.approx((9 / 10, 1 / 10))
    assert first["Second"] > first["First"] > second["First"] > second["Second"]


def test_a_sentence_id_has_at_most_18_digits(command: Command, write: Write) -> None:
    for digits, expected in ((18, 0), (19, 2)):
        nbest = write("list", f"{'0' * (digits - 1)}0 ||| a ||| L= 1 ||| 1\n")
        status, out, err = command("rerank", nbest, "--weights", write("weights", "L= 1\n"))
        assert (status, out) == (expected, b"" if expected else b"a\n")
        assert ("list:1: expected a sentence id, found '0000" in err) == (expected == 2)
