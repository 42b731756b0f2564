"""Confidence estimators are fitted on a list, written, read and applied."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moses_io.files.errors import InputError
from moses_io.filters import Filters
from moses_io.nbest import read_nbest
from moses_io.weights import read_weight_file, read_weights
from rerank.confidence.confidence import Confidence, read_confidence, read_estimator, write_confidence
from rerank.confidence.fitting import EstimateCollector, MeasuredEstimates, actual_scores, fit_confidence
from rerank.linear.ranking import LinearModel, Ranking
from rerank.metrics.metric import Metric
from rerank.tuning.tune import make_tuning
from rerank.tuning.tuning_set import Lists

Command = Callable[..., tuple[int, bytes, str]]
Altered = Callable[[dict[str, Any]], Path]


def rankings(fitted: Any) -> list[Ranking]:
    model = LinearModel(read_weight_file(str(fitted.weights)), "weights")
    return [Ranking(each, model.scores(each)) for each in read_nbest(str(fitted.nbest))]


def measure(fitted: Any, confidence: Confidence, references: list[list[str]]) -> MeasuredEstimates:
    measuring = EstimateCollector(confidence, references, Filters(""))
    for ranking in rankings(fitted):
        measuring.add(ranking)
    return measuring.measured()


def test_the_best_predictor_is_found(fitted: Any) -> None:
    values = fitted.values()
    assert values["best_predictor"] == next(iter(values["quality"]["predictors"])) == "Known per word"
    assert values["added"] == ["Known"]
    assert values["dev"]["best_predictor"] > 0.7 and values["dev"]["correlation"] > 0.7
    actual = [quarter["actual"] for quarter in values["dev"]["quarters"]]
    assert actual == sorted(actual) and actual[3] - actual[0] > 30


def test_negative_sentence_scores_count_as_0() -> None:
    """TER is above 1 if a candidate needs more edits than the reference has words."""
    metric = Metric("ter")
    count = metric.counter(["a"])
    assert actual_scores(metric, np.array([count("b c d"), count("a")])).tolist() == [0, 100]


def test_a_written_estimator_is_read_back(fitted: Any, tmp_path: Path) -> None:
    confidence = read_confidence(str(fitted.confidence))
    write_confidence(str(tmp_path / "again"), confidence)
    assert (tmp_path / "again").read_bytes() == fitted.confidence.read_bytes()


def refit(fitted: Any, nbest: Path, weights: Path, folder: Path, metric: str = "bleu") -> Path:
    lists = Lists([str(nbest)], [str(fitted.reference)], Filters(""))
    initial, tuning = str(fitted.weights.with_name("initial.ini")), make_tuning({"tuner": "expected"})
    fit_confidence(lists, initial, str(weights), tuning, metric, 4, str(folder / "again"))
    return folder / "again"


def test_the_order_of_sentences_does_not_matter(fitted: Any, tmp_path: Path, write: Callable[..., Path]) -> None:
    lines = fitted.nbest.read_text().splitlines(keepends=True)
    reversed_list = write("turned", "".join(sorted(lines, key=lambda line: -int(line.split(" ")[0]))))
    assert refit(fitted, reversed_list, fitted.weights, tmp_path).read_bytes() == fitted.confidence.read_bytes()


def test_few_sentences_with_initial_weights_that_were_kept(
    fitted: Any, tmp_path: Path, write: Callable[..., Path]
) -> None:
    """Only the mean is estimated, for the choices of the kept weights (the first of equal candidates)."""
    few = write("few", "".join(fitted.nbest.read_text().splitlines(keepends=True)[:30]))
    kept = write("kept.ini", "# the initial weights are kept: nothing helps\n[weight]\nKnown= 0\nNoise= 0 0\n")
    confidence = read_confidence(str(refit(fitted, few, kept, tmp_path)))
    model, count = LinearModel(read_weight_file(str(kept)), "kept"), Metric("bleu")
    references = fitted.reference.read_text().splitlines()
    chosen = [Ranking(each, model.scores(each)).best.text for each in read_nbest(str(few))]
    statistics = [count.counter([one])(text) for one, text in zip(references, chosen, strict=False)]
    assert confidence.quality.intercept == pytest.approx(100 * count.formula.smoothed(np.array(statistics)).mean())
    assert not confidence.quality.coefficients.any()
    assert confidence.spread == 1


def test_measure_an_estimator_on_the_same_sentences(fitted: Any) -> None:
    confidence = read_confidence(str(fitted.confidence))
    measured = measure(fitted, confidence, [fitted.reference.read_text().splitlines()])
    assert measured.outcome and measured.metric == "BLEU"
    fit = measured.outcome.fit()
    assert fit.correlation > confidence.dev.correlation - 0.01
    assert sum(part.count for part in fit.quarters) == len(measured.estimates) == 80
    unjudged = measure(fitted, confidence, [])
    assert (unjudged.estimates, unjudged.outcome) == (measured.estimates, None)


def test_fit_to_another_metric(fitted: Any, tmp_path: Path) -> None:
    """The choices are those of the tuned weights. Expected and actual scores are in the other metric."""
    path = refit(fitted, fitted.nbest, fitted.weights, tmp_path, "chrf3")
    references = [fitted.reference.read_text().splitlines()]
    measured = measure(fitted, read_confidence(str(path)), references)
    chrf3 = Metric("chrf3")
    actual = [
        100 * float(chrf3.formula.score(np.array(chrf3.counter([reference])(ranking.best.text))))
        for reference, ranking in zip(references[0], rankings(fitted), strict=True)
    ]
    assert measured.metric == "chrF3" and measured.outcome
    assert measured.outcome.actual == pytest.approx(actual)
    assert measured.outcome.expected.mean() == pytest.approx(np.mean(actual), abs=2)
    one, other = read_confidence(str(path)), read_confidence(str(fitted.confidence))
    assert (one.units.names, one.dev) != (other.units.names, other.dev)


def test_estimates_do_not_depend_on_other_sentences(fitted: Any) -> None:
    confidence = read_estimator(
        str(fitted.confidence), read_weights(str(fitted.weights)), "weights", moses_output=False
    )
    ranked = rankings(fitted)
    estimates = {each.candidates.sentence: confidence.estimate(each) for each in ranked}
    for number in np.random.default_rng(0).permutation(len(ranked)).tolist():
        assert confidence.estimate(ranked[number]) == estimates[ranked[number].candidates.sentence]


@pytest.mark.parametrize(("intercept", "expected"), [(-500.0, 0.0), (500.0, 100.0)])
def test_expected_scores_are_in_the_range_of_the_metric(fitted: Any, intercept: float, expected: float) -> None:
    confidence = read_confidence(str(fitted.confidence))
    extreme = replace(confidence, quality=replace(confidence.quality, intercept=intercept))
    assert extreme.estimate(rankings(fitted)[0]).expected == expected


def test_estimates_do_not_depend_on_the_scale_of_the_weights(fitted: Any) -> None:
    """With all weights doubled, the scores and their spread on dev are doubled."""
    confidence = read_confidence(str(fitted.confidence))
    doubled = replace(confidence, spread=2 * confidence.spread)
    for ranking in rankings(fitted)[:9]:
        assert doubled.estimate(ranking._replace(scores=2 * ranking.scores)) == confidence.estimate(ranking)


def test_the_output_has_one_line_per_sentence(
    command: Command, fitted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rerank = ["rerank", fitted.nbest, "--weights", fitted.weights, "--sentences", 82, "--on-missing", "blank"]
    plain = command(*rerank)[1]
    status, out, _ = command(*rerank, "--estimator", fitted.confidence, "--confidence", tmp_path / "out")
    assert (status, out) == (0, plain)
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(fitted.weights.read_bytes())))  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", stdin)  # can be read once
    rerank[3] = "-"
    assert command(*rerank, "--estimator", fitted.confidence, "--confidence", tmp_path / "out")[:2] == (0, plain)
    lines = (tmp_path / "out").read_text().split("\n")
    confidence = read_estimator(
        str(fitted.confidence), read_weights(str(fitted.weights)), "weights", moses_output=False
    )
    expected = [confidence.estimate(each) for each in rankings(fitted)]
    assert lines == [
        *(f"{each.expected:.2f}\t{'' if each.helped is None else f'{each.helped:.4f}'}" for each in expected),
        "\t", "\t", "",
    ]  # fmt: skip
    assert {each.helped is None for each in expected} == {True, False}


def test_estimates_compare_with_the_moses_output(
    command: Command, fitted: Any, write: Callable[..., Path], tmp_path: Path
) -> None:
    """The output has the second candidates, as with MBR decoding. In one sentence, it is not among the candidates."""
    printed = [each.candidates.hypotheses[1].text for each in rankings(fitted)]
    printed[3] = "none of them"
    chosen = [each.best.text for each in rankings(fitted)]
    rerank = ["rerank", fitted.nbest, "--weights", fitted.weights, "--estimator", fitted.confidence]
    output = write("moses", "".join(f"{text} \n" for text in printed))
    status, out, err = command(*rerank, "--confidence", tmp_path / "c", "--moses-output", output)
    assert (status, out.decode().split("\n")) == (0, [*chosen, ""])
    helped = [line.split("\t")[1] for line in (tmp_path / "c").read_text().splitlines()]
    changed = [one != other for one, other in zip(printed, chosen, strict=True)]
    assert [bool(each) for each in helped] == [*changed[:3], False, *changed[4:]]
    assert err.endswith("Moses' output is not among the candidates in 1 of 80 sentences\n")


def test_the_moses_output_must_have_one_line_per_sentence(
    command: Command, fitted: Any, write: Callable[..., Path]
) -> None:
    output = write("moses", "a\n" * 79)
    rerank = ["rerank", fitted.nbest, "--weights", fitted.weights, "--sentences", 80, "--moses-output", output]
    status, _, err = command(*rerank)
    assert (status, f"{output} has 79 lines, the source has 80" in err) == (2, True)


def fit_with_output(fitted: Any, printed: list[str], folder: Path) -> Path:
    """Fit an estimator with the Moses output of dev."""
    (folder / "dev.moses").write_text("".join(f"{text}\n" for text in printed))
    lists = Lists([str(fitted.nbest)], [str(fitted.reference)], Filters(""))
    initial = str(fitted.weights.with_name("initial.ini"))
    tuning, output = make_tuning({"tuner": "expected"}), str(folder / "again")
    fit_confidence(lists, initial, str(fitted.weights), tuning, "bleu", 4, output, str(folder / "dev.moses"))
    return folder / "again"


def test_a_missing_moses_output_is_a_warning_if_dev_had_one(command: Command, fitted: Any, tmp_path: Path) -> None:
    confidence = fit_with_output(fitted, [each.candidates.hypotheses[1].text for each in rankings(fitted)], tmp_path)
    rerank = ["rerank", fitted.nbest, "--weights", fitted.weights, "--estimator", confidence]
    rerank += ["--confidence", tmp_path / "estimates"]
    status, _, err = command(*rerank)
    warning = f"warning: {confidence}: fitted with Moses' output, which is not given for this list"
    assert status == 0 and warning in err
    assert "warning" not in command(*rerank, "--moses-output", tmp_path / "dev.moses")[2]


def test_a_moses_output_of_the_highest_totals_changes_nothing(command: Command, fitted: Any, tmp_path: Path) -> None:
    """This is the output of a decoder without MBR, so the estimator is the same with and without it."""
    printed = [each.candidates.hypotheses[each.candidates.highest_total].text for each in rankings(fitted)]
    assert fit_with_output(fitted, printed, tmp_path).read_bytes() == fitted.confidence.read_bytes()


def test_the_estimator_is_fitted_to_the_moses_output(fitted: Any, tmp_path: Path) -> None:
    """The mean probability is near the fraction of choices that are better than the Moses output."""
    printed = [each.candidates.hypotheses[1].text for each in rankings(fitted)]
    again = fit_with_output(fitted, printed, tmp_path)
    one, other = read_confidence(str(fitted.confidence)), read_confidence(str(again))
    assert one.quality.intercept == other.quality.intercept
    assert one.helped.intercept != other.helped.intercept
    bleu, references = Metric("bleu"), fitted.reference.read_text().splitlines()
    better = []
    for ranking, answer, text in zip(rankings(fitted), references, printed, strict=True):
        count = bleu.counter([answer])
        new, old = bleu.formula.smoothed(np.array([count(ranking.best.text), count(text)])).round(12)
        estimate = other.estimate(ranking._replace(candidates=replace(ranking.candidates, moses_output=text)))
        if estimate.helped is not None and new != old:
            better.append((estimate.helped, new > old))
    helped, true = np.array(better).T
    assert len(better) > 20 and helped.mean() == pytest.approx(true.mean(), abs=0.1)


def test_incompatible_arguments_are_errors(command: Command, fitted: Any, tmp_path: Path) -> None:
    rerank = ["rerank", fitted.nbest, "--weights", fitted.weights, "--output", tmp_path / "o"]
    both = "--confidence needs --estimator, and --estimator needs --confidence"
    for arguments, message in (
        (["--confidence", tmp_path / "c"], both),
        (["--estimator", fitted.confidence], both),
        (["--estimator", fitted.confidence, "--confidence", tmp_path / "o"], "--output and --confidence name the same"),
        (["--estimator", tmp_path / "none", "--confidence", tmp_path / "c"], "none: No such file"),
    ):
        status, out, err = command(*rerank, *arguments)
        assert (status, out, err.count("\n"), message in err) == (2, b"", 1, True), err
    assert list(tmp_path.iterdir()) == []


def test_other_features_and_other_weights_are_errors(
    command: Command, fitted: Any, tmp_path: Path, write: Callable[..., Path]
) -> None:
    estimator = ["--estimator", fitted.confidence, "--confidence", tmp_path / "c"]
    ini = fitted.weights.read_text()
    other = write("other.ini", ini.replace("Known= ", "Known= 1"))
    status, _, err = command("rerank", fitted.nbest, "--weights", other, *estimator)
    assert (status, f"confidence.json: fitted for other weights than the ones in {other}" in err) == (2, True)
    confidence = read_confidence(str(fitted.confidence))
    for line, message in (
        ("0 ||| a ||| Known= 1", "list:1: feature 'Noise' has none, confidence was fitted with 2 values"),
        ("0 ||| a ||| Known= 1 Noise= 1", "list:1: feature 'Noise' has 1 value, confidence was fitted with 2 values"),
        ("0 ||| a ||| Known= 1 Noise= 1 2 X= 1", "list:1: feature 'X' has 1 value, confidence was fitted with none"),
    ):
        (candidates,) = read_nbest(str(write("list", line + "\n")))
        with pytest.raises(InputError, match=message):
            confidence.check(candidates)


def steps(values: list[Any]) -> dict[str, Any]:
    return {"intercept": 1, "predictors": {"x": {"mean": 0, "deviation": 1, "coefficient": 1, "steps": values}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format 2, this version reads formats 3, 4 and 5. Make it again with `moses-rerank run`"),
        ({"format": 6}, "format 6, this version reads formats 3, 4 and 5. Make it again with `moses-rerank run`"),
        ({"spread": 0}, "Expected `float` > 0.0 - at `$.spread`"),
        ({"spread": 1e999}, "expected a number up to 3.4e+38, found inf"),
        ({"deviations": [1, 1]}, "2 deviations of 3 values"),
        ({"features": []}, "Expected `object`, got `array` - at `$.features`"),
        ({"added": [1]}, "Expected `str`, got `int` - at `$.added[0]`"),
        ({"added": "Known"}, "Expected `array`, got `str` - at `$.added`"),
        ({"added": ["Unknown"]}, "`added` names features that are not in `features`"),
        ({"deviations": [-1, 1, 1]}, "Expected `float` >= 0.0 - at `$.deviations[0]`"),
        ({"metric": "foo"}, "unknown metric 'foo'"),
        (
            {"helped": {"intercept": 1, "predictors": {"x": {"mean": 1}}}},
            "missing required field `deviation` - at `$.helped.predictors[...]`",
        ),
        ({"helped": steps([[0.5, "high"]])}, "Expected `float`, got `str` - at `$.helped.predictors[...].steps[0][1]`"),
        ({"helped": steps([[0.5]])}, "Expected `array` of length 2, got 1"),
        ({"helped": steps([0.5])}, "Expected `array`, got `float`"),
        ({"helped": {"intercept": True, "predictors": {}}}, "Expected `float`, got `bool` - at `$.helped.intercept`"),
        ({"moses_output": 1}, "Expected `bool`, got `int` - at `$.moses_output`"),
        ({"best_predictor": "luck"}, "'luck' is no predictor of the expected score"),
    ],
)
def test_a_damaged_file_is_an_error(altered: Altered, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_confidence(str(altered(changes)))
    assert "altered.json: " in str(caught.value) and message in str(caught.value)


def test_unknown_keys_of_a_confidence_file_are_ignored(fitted: Any, altered: Altered, tmp_path: Path) -> None:
    confidence = read_confidence(str(altered({"kept": {"all": 30.5, "kept": 30.25}})))
    write_confidence(str(tmp_path / "again"), confidence)
    assert (tmp_path / "again").read_bytes() == fitted.confidence.read_bytes()


def test_a_predictor_of_another_version_is_an_error(fitted: Any, altered: Altered) -> None:
    content = fitted.values()["helped"]
    content["predictors"]["luck"] = {"mean": 0, "deviation": 1, "coefficient": 1}
    confidence = read_confidence(str(altered({"helped": content})))
    with pytest.raises(InputError, match="fitted with 'luck', which is no predictor of this version"):
        for ranking in rankings(fitted):
            confidence.estimate(ranking)


def test_files_of_another_kind_are_errors(write: Callable[..., Path]) -> None:
    for content, message in (("[]", "not a confidence file"), ("{}", "not a confidence file"), ("x", "not JSON")):
        with pytest.raises(InputError, match=message):
            read_confidence(str(write("file", content)))


def test_a_file_of_format_3_gives_the_same_estimates() -> None:
    """The file was written before predictors were renamed. The content of the two files is equal otherwise."""
    one, other = (read_confidence(str(Path(__file__).parent / f"format{number}.json")) for number in (3, 4))
    rng = np.random.default_rng(1)
    for old, new in ((one.quality, other.quality), (one.helped, other.helped)):
        assert old.names == new.names
        rows = old.means + rng.normal(size=(20, len(old.names))) * old.deviations
        np.testing.assert_array_equal(old.values(rows), new.values(rows))
    np.testing.assert_array_equal(one.units.spread, other.units.spread)
    assert replace(one.units, spread=other.units.spread) == other.units
    assert replace(one, quality=other.quality, helped=other.helped, units=other.units) == other


def test_values_of_a_feature_in_a_file_of_format_4_get_the_names_of_weights(fitted: Any, altered: Altered) -> None:
    """They were counted from 1, after a colon. `Noise` has two values, `Known` has one."""
    text = json.dumps(fitted.values()).replace("Noise.0", "Noise:1").replace("Noise.1", "Noise:2")
    old = json.loads(text) | {"format": 4, "best_predictor": "consensus, Noise:2"}
    confidence, expected = read_confidence(str(altered(old))), read_confidence(str(fitted.confidence))
    assert (confidence.quality.names, confidence.helped.names) == (expected.quality.names, expected.helped.names)
    assert confidence.best_predictor == "consensus, Noise.1"
