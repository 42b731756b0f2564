"""Names of the lists that models add."""

import pytest

from moses_io.errors import InputError
from rerank.systems.request import check_names, indicators, list_name


def test_lists_are_named_by_letters_and_digits() -> None:
    assert list_name("many-cohn_align.1") == "manycohnalign1"
    assert indicators(["a", "b"]) == ["FromMoses", "Froma", "Fromb"] and indicators([]) == []


@pytest.mark.parametrize(
    ("models", "features", "message"),
    [
        (["a-b", "ab"], {}, "models.ab: another list is called ab, too"),
        (["Moses"], {}, "models.Moses: another list is called Moses, too"),
        (["a"], {"Froma": "length"}, "features.Froma: that is what says who has a candidate; name another label"),
        (["a"], {"Rest": "rest:moses.ini"}, "features.Rest: rest is for the decoder's own candidates; name no `cand"),
        (["a"], {"P": "phrases"}, "features.P: phrases is for the decoder's own candidates; name no `candidates`"),
    ],
)
def test_names_and_features_that_do_not_go(models: list[str], features: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_names(models, features)
    check_names(models[:1] if len(models) > 1 else [], features)
