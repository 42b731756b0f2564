"""Requests for features, as given to `--feature` and in experiment files."""

import pytest

from features.request import FeatureRequest, group_by_models, parse_requests
from moses_io.files.errors import InputError


def test_requests_are_parsed() -> None:
    (named,) = parse_requests(["L=lexical:a\nb.f2e"])
    assert (named.label, named.parts) == ("L", ["a\nb.f2e"])
    assert parse_requests(["NMT=neural:a/b:c", "length", "kenlm:x", "Length1=length", "length"]) == [
        FeatureRequest("NMT", "neural", "a/b:c"),
        FeatureRequest("Length0", "length", ""),
        FeatureRequest("KenLM0", "kenlm", "x"),
        FeatureRequest("Length1", "length", ""),
        FeatureRequest("Length2", "length", ""),
    ]
    assert [each.label for each in parse_requests(["length", "Length0=copied"])] == ["Length1", "Length0"]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["lenght"], "unknown feature 'lenght'. Did you mean 'length'?"),
        (["NMT_fwd=length"], "label 'NMT_fwd': expected a letter, then letters and digits"),
        (["1x=length"], "label '1x'"),
        (["=length"], "label ''"),
        (["A=length", "A=length"], "label 'A' is given to two features"),
        (["neural"], "feature 'neural': expected neural:DIR"),
        (["copied:3"], "feature 'copied:3': expected copied"),
        (["A=nowhere.module:Class"], "unknown feature 'nowhere.module:Class': no "),
        (["A=nowhere.module:Class"], "/nowhere/module.py, and no such module is installed. Known: neural, "),
        (["neurall:models"], "/neurall.py, and no such module is installed. Did you mean 'neural'?"),
        (["lexica:lex.f2e"], "/lexica.py, and no such module is installed. Did you mean 'lexical'?"),
        (["string:digits"], "unknown feature 'string:digits': "),
        (["time:Clock"], "unknown feature 'time:Clock': time has no class 'Clock' with __call__"),
        ([f"{'A' * 101}=length"], "expected a letter, then letters and digits, at most 100"),
        (["Rest=length"], "label 'Rest': Rest, Rest0 … are reserved for the feature rest"),
    ],
)
def test_wrong_requests_are_errors(texts: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_requests(texts)
    assert message in str(caught.value)


def test_requests_for_the_same_models_are_grouped() -> None:
    requests = ["A=neural:f", "L=length", "B=neural:b", "M=ensemble:f,b", "C=neural:g", "G=agreement:f,b", "K=links:f"]
    labels = [[request.label for request in group] for group in group_by_models(parse_requests(requests))]
    assert labels == [["A", "B", "G", "K"], ["L"], ["M"], ["C"]]
