import pytest

from features.models.settings import PRESETS, Architecture, Training, find_preset, override
from moses_io.errors import InputError


def test_settings_go_where_they_belong() -> None:
    keys = {"embedding": "1", "hidden": "2", "attention": "3", "layers": "2"}
    values = {"epochs": "4", "updates": "5", "batch": "6", "dropout": "0.5", "rate": "1e-3", "seed": "7"}
    architecture, training = override(Architecture(), Training(), keys | values)
    assert architecture == Architecture(embedding=1, hidden=2, attention=3, layers=2)
    assert training == Training(epochs=4, updates=5, batch=6, dropout=0.5, rate=0.001, seed=7)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hiden", "3", "unknown setting 'hiden'; did you mean 'hidden'?"),
        ("terms", "x", "unknown setting 'terms'"),
        ("hidden", "3.5", "setting 'hidden': expected a whole number, found '3.5'"),
        ("rate", "fast", "setting 'rate': expected a number, found 'fast'"),
        ("rate", "nan", "setting 'rate': nan is out of range"),
        ("hidden", "0", "setting 'hidden': 0 is out of range"),
        ("dropout", "1", "setting 'dropout': 1 is out of range"),
        ("batch", "-1", "setting 'batch': -1 is out of range"),
    ],
)
def test_settings_that_are_refused(key: str, value: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        override(Architecture(), Training(), {key: value})
    assert message in str(caught.value)


def test_presets() -> None:
    assert find_preset("cohn-align").architecture.terms == ("position", "markov", "fertility")
    assert set(PRESETS) >= {"rnnsearch", "cohn-align"}
    with pytest.raises(InputError, match="unknown preset 'rnnserch'; did you mean 'rnnsearch'"):
        find_preset("rnnserch")
