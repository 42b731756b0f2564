"""Expected work of stages: growth with sizes and settings, and agreement with measured times."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from features.models.config import ModelConfig
from features.models.cost import TextSize, TimeFactors, multiply_adds, training_seconds
from features.models.settings import Architecture
from features.models.training.request import TrainingRequest
from moses_io.files.json_files import write_json
from rerank.experiment.costs import Costs, list_size, text_size
from rerank.experiment.file import read_experiment
from rerank.experiment.recipe import LARGE

SWAHILI = TextSize(30_628, 642_587, 21_287, 1.425), TextSize(30_628, 640_921, 18_312, 1.425)
NOTHING = TextSize(0, 0, 0), TextSize(0, 0, 0)


def seconds(preset: str = "rnnsearch", **settings: Any) -> float:
    return training_seconds(TrainingRequest(preset, settings=settings), SWAHILI, NOTHING, aligned=True)


def test_estimated_training_times_agree_with_measured_times() -> None:
    """30,628 pairs took 1,269 s and 2,430 s on one idle EPYC core without bfloat16."""
    transformer = {
        "hidden_size": 128, "embedding_size": 128, "decoder_layers": 4, "encoder_layers": 4, "feedforward_size": 256,
        "tied_softmax": True, "batch_tokens": 2000, "lexicon": "bias", "bpe": 4000,
    }  # fmt: skip
    recurrent = {**LARGE, "lexicon": "bias", "bpe": 4000, "epochs": 2}
    assert seconds(**recurrent) == pytest.approx(1269, rel=0.1)
    assert seconds("transformer", **transformer, epochs=5) == pytest.approx(2430, rel=0.1)


def test_training_time_is_proportional_to_updates() -> None:
    whole = seconds(epochs=4)
    assert seconds(epochs=8) == pytest.approx(2 * whole)
    assert seconds(epochs=8, updates=958) == pytest.approx(whole / 4, rel=0.01)
    assert seconds(epochs=8, updates=479, gradient_accumulation=2) == pytest.approx(whole / 4, rel=0.01)
    assert seconds(epochs=4, updates=1_000_000) == whole


def test_settings_that_make_training_slower() -> None:
    usual = seconds()
    larger = [{"hidden_size": 512}, {"batch_size": 8}, {"bpe": 30_000}, {"r_drop": 1.0}, {"encoder_layers": 2}]
    assert min(seconds(**settings) for settings in larger) > 1.1 * usual
    assert seconds(vocabulary_size=1000) < usual


def test_fine_tuning_time_is_proportional_to_its_pairs() -> None:
    dev = SWAHILI[0].part(0.01), SWAHILI[1].part(0.01)
    request = TrainingRequest("rnnsearch", settings={"epochs": 4, "fine_tuning_epochs": 3})
    plain = replace(request, settings={"epochs": 4})
    added = training_seconds(request, SWAHILI, dev) - training_seconds(plain, SWAHILI, dev)
    assert added == pytest.approx(seconds(epochs=4) * 3 / 4 * 6 * 0.01)


def test_multiply_adds_of_a_small_network() -> None:
    """The expected counts are computed by hand: embedding size 2, state size 3, attention size 5, 7 words."""
    small = Architecture(embedding_size=2, hidden_size=3, attention_size=5)
    encoder, keys = 2 * 4 * 3 * (2 + 3), 6 * 5
    decoder, query, output, softmax = 4 * 3 * (2 + 6 + 3), 3 * 5, 3 * (3 + 6 + 2), 3 * 7
    assert multiply_adds(small, 7) == (encoder + keys, decoder + query + output + softmax)


def test_multiply_adds_of_a_network_that_attends_after_recurrence() -> None:
    """The cell does not read the context, keys have the state size, and queries are not projected."""
    small = Architecture(embedding_size=2, hidden_size=3, decoder="attend-after", attention_score="general")
    encoder, keys = 2 * 4 * 3 * (2 + 3), 6 * 3
    decoder, output, softmax = 4 * 3 * (2 + 3), 3 * (3 + 6), 3 * 7
    assert multiply_adds(small, 7) == (encoder + keys, decoder + output + softmax)


def test_multiply_adds_of_a_network_without_attention() -> None:
    """Cell and softmax read no context, and there are no keys."""
    small = Architecture(embedding_size=2, hidden_size=3, encoder="unidirectional", decoder="no-attention")
    encoder, decoder, softmax = 4 * 3 * (2 + 3), 4 * 3 * (2 + 3), 3 * 7
    assert multiply_adds(small, 7) == (encoder, decoder + softmax)


@pytest.mark.parametrize("preset", ["attend-after", "gnmt"])
def test_smaller_batches_are_slower_only_with_stepwise_recurrence(preset: str) -> None:
    assert seconds(batch_size=8) > 1.1 * seconds()
    assert seconds(preset, batch_size=8) == pytest.approx(seconds(preset))


def test_sizes_of_texts_and_lists(tmp_path: Path) -> None:
    source, nbest = tmp_path / "source", tmp_path / "nbest"
    source.write_text("a b c\na d\n")
    nbest.write_text(
        "\n0 ||| x y ||| LM= -1 TM= 1 2 ||| 3\n0 ||| x ||| LM= -1 TM= 1 2 ||| 3\n1 |||  ||| LM= 0 TM= 1 1 ||| 0\n"
    )
    assert text_size(str(source)) == TextSize(lines=2, words=5, vocabulary=1)
    size = list_size(str(nbest), str(source))
    assert (size.sentences, size.source, size.candidates, size.words, size.values) == (2, 5, 3, 3, 3)
    source.write_text("a\n")
    assert text_size(str(source)).words == 1
    assert text_size(str(tmp_path / "missing")).words == 0


EXPERIMENT = """\
output = "work"
initial_weights = "moses.ini"
train = { source = "train.de", target = "train.en" }
dev = { source = "dev.de", reference = "dev.en", nbest = "dev.nbest" }
test = { source = "test.de", nbest = "test.nbest" }

[models]
forward = { preset = "rnnsearch", epochs = 4, hidden_size = 8 }
backward = { preset = "rnnsearch", epochs = 4, hidden_size = 8, backward = true }

[features]
NMT = "neural:forward"
NMTback = "neural:backward"
Len = "length"
"""


@pytest.fixture
def costs(small: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Costs]:
    """Return a function that makes the costs of an experiment, after replacements in its file."""

    def make(*replaced: tuple[str, str]) -> Costs:
        folder = small(pairs=20, sentences=10, candidates=6)
        text = EXPERIMENT
        for old, new in replaced:
            text = text.replace(old, new)
        (folder / "e.toml").write_text(text)
        return Costs(read_experiment(str(folder / "e.toml")), "cpu")

    return make


def test_tuning_time_grows_with_folds_and_features(costs: Callable[..., Costs]) -> None:
    few, many = costs(), costs(('Len = "length"', 'Len = "length"\nCopied = "copied"\nRep = "repetition"'))
    assert few.tuning().seconds < few.ablation().seconds < many.ablation().seconds
    folds = costs(("[features]", "[tuning]\nfolds = 10\n[features]"))
    assert folds.tuning().seconds > few.tuning().seconds and folds.ablation().seconds > few.ablation().seconds
    auto = costs(("[features]", '[tuning]\ntuner = "auto"\n[features]'))
    assert auto.tuning().seconds > few.tuning().seconds


def test_models_that_score_together_share_some_time(costs: Callable[..., Costs]) -> None:
    costs_of_run = costs()
    forward, backward, length = costs_of_run._experiment.requests("dev")
    both = costs_of_run.scoring("dev", [forward, backward]).seconds
    alone = [costs_of_run.scoring("dev", [each]).seconds for each in (forward, backward)]
    assert max(alone) < both < sum(alone)
    assert costs_of_run.scoring("dev", [forward, forward]) == costs_of_run.scoring("dev", [forward])
    assert costs_of_run.scoring("dev", [length]).seconds < min(alone)


def test_added_candidates_increase_the_time_of_later_stages(costs: Callable[..., Costs]) -> None:
    with_ten = costs(("hidden_size = 8 }", "hidden_size = 8, candidates = 10 }"))
    assert with_ten.reading("dev").seconds > costs().reading("dev").seconds
    assert with_ten.translation("dev").seconds > 0


def test_an_interrupted_training_counts_from_its_last_epoch(costs: Callable[..., Costs]) -> None:
    costs_of_run = costs()
    assert costs_of_run.training("forward").done == 0
    interrupted = Path(costs_of_run._experiment.model("forward")).parent / ".forward.training-0123456789ab" / "forward"
    interrupted.mkdir(parents=True)
    request = costs_of_run._experiment.models["forward"].request
    write_json(str(interrupted / "config.json"), asdict(ModelConfig(request.preset, "forward", *request.resolve())))
    (interrupted / "metrics.jsonl").write_text('{"epoch": 1, "updates": 5}\n{"epoch": 3, "updates": 15}\n')
    assert costs_of_run.training("forward").done == 0.75
    assert costs_of_run.training("backward").done == 0
    assert costs(("hidden_size = 8 }", "hidden_size = 9 }")).training("forward").done == 0


def test_the_lists_factor_scales_all_stages_that_read_lists(costs: Callable[..., Costs]) -> None:
    costs_of_run = costs()
    twice = Costs(costs_of_run._experiment, "cpu", factors=TimeFactors(lists=2))
    for work in ("tuning", "ablation", "confidence", "tuning_shortlist"):
        assert getattr(twice, work)().seconds == pytest.approx(2 * getattr(costs_of_run, work)().seconds)
    for work in ("reading", "measuring", "evaluation"):
        assert getattr(twice, work)("dev").seconds == pytest.approx(2 * getattr(costs_of_run, work)("dev").seconds)
    assert twice.training("forward") == costs_of_run.training("forward")
