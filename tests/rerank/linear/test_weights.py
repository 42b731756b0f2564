"""Initial weights of the features of a list."""

import pytest

from moses_io.files.errors import InputError
from moses_io.hypothesis import UNLABELLED
from moses_io.untuneable import Untuneable
from moses_io.weights import WeightFile
from rerank.linear.candidates import FeatureSpace
from rerank.linear.weights import hint_for, match_initial_weights, with_unseen

SPACE = FeatureSpace((("L", 1), ("TM", 2)), ("s_x",))


def test_a_declared_feature_without_weights_has_weight_1() -> None:
    content = WeightFile({"L": (0.5,)}, unweighted=("TM", "Other0"), files=("moses.ini",))
    assert match_initial_weights(content, SPACE) == {"TM": (1.0, 1.0), "L": (0.5,)}


@pytest.mark.parametrize("values", [(0.5, 0.25, -0.25), (0.5, 0.25, -0.25, 1.0)])
def test_weights_without_names_may_end_with_a_factor_of_sparse_weights(values: tuple[float, ...]) -> None:
    weights = match_initial_weights(WeightFile({UNLABELLED: values}, files=("init.opt",)), SPACE)
    assert (weights["L"], weights["TM"]) == ((0.5,), (0.25, -0.25))


@pytest.mark.parametrize("count", [2, 5])
def test_another_number_of_weights_without_names_is_an_error(count: int) -> None:
    with pytest.raises(InputError, match=f"init.opt: expected 3 initial weights, found {count}"):
        match_initial_weights(WeightFile({UNLABELLED: (1.0,) * count}, files=("init.opt",)), SPACE)


def test_tuned_weights_of_a_dense_feature_with_an_underscore_are_kept() -> None:
    """With one value, it is not taken for a sparse feature that the tuning set lacks."""
    space = FeatureSpace((("_0", 1), ("_1", 1)))
    tuned = {"_0": (0.1,), "_1": (0.9,)}
    assert with_unseen(tuned, {"_0": (0.5,), "_1": (0.5,)}, space) == tuned


def test_weights_of_an_unlabelled_list_may_end_with_a_factor_of_sparse_weights() -> None:
    space = FeatureSpace(((UNLABELLED, 3),), ("sp_x",))
    content = WeightFile({UNLABELLED: (0.5, 0.25, -0.25, 1.0)}, files=("init.opt",))
    assert match_initial_weights(content, space) == {UNLABELLED: (0.5, 0.25, -0.25)}


def test_without_sparse_features_there_is_no_factor() -> None:
    content = WeightFile({UNLABELLED: (0.5, 0.25, -0.25, 1.0)}, files=("init.opt",))
    with pytest.raises(InputError, match="feature 'Unlabelled' has 3 values in the list and 4 weights"):
        match_initial_weights(content, FeatureSpace(((UNLABELLED, 3),)))


def test_a_listed_feature_gets_its_weight_although_moses_does_not_tune_it_by_default() -> None:
    """The list has the feature, so it is tuneable. A file such as `run1.dense` does not declare that."""
    space = FeatureSpace((("L", 1), ("UnknownWordPenalty0", 1)))
    untuneable = {"UnknownWordPenalty0": Untuneable("UnknownWordPenalty", (0.7,))}
    content = WeightFile({"L": (0.5,)}, untuneable, files=("run1.dense",))
    assert match_initial_weights(content, space) == {"L": (0.5,), "UnknownWordPenalty0": (0.7,)}


@pytest.mark.parametrize(("names", "hinted"), [(("LM0", "Rest"), True), (("lm", "NMT"), False)])
def test_only_a_list_of_present_moses_gives_a_hint_about_an_old_ini(names: tuple[str, ...], hinted: bool) -> None:
    """A list of old Moses may also have a feature without a weight."""
    space = FeatureSpace(tuple((name, 1) for name in names))
    hint = hint_for(["NMT"], space, {"lm": (0.5,), "w": (-1.0,), "Rest": (1.0,)})
    assert ("from before 2013" in hint) == hinted
