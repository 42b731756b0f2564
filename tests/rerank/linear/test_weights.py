"""Initial weights of the features of a list."""

import pytest

from moses_io.files.errors import InputError
from moses_io.hypothesis import UNLABELLED
from moses_io.weights import WeightFile
from rerank.linear.candidates import FeatureSpace
from rerank.linear.weights import match_initial_weights

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
