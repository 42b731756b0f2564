from collections.abc import Callable
from pathlib import Path

import pytest

from features.request import parse_requests
from moses_io.files.errors import InputError
from rerank.experiment.model_entries import expand_feature, expand_models

Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

GROUPS = {"many": ("many-a-1", "many-b-1"), "three": ("x", "y", "z")}


def test_lists_of_presets_and_seeds_expand_to_models() -> None:
    models, groups = expand_models(
        {"many": {"preset": ["a", "b"], "hidden_size": 8}, "two": {"preset": "c", "seeds": 2}, "one": {"preset": "d"}}
    )
    assert groups == {"many": ("many-a-1", "many-b-1"), "two": ("two-c-1", "two-c-2")}
    assert models["many-b-1"] == {"preset": "b", "seed": 1, "hidden_size": 8}
    assert models["two-c-2"] == {"preset": "c", "seed": 2} and models["one"] == {"preset": "d"}
    assert expand_models({"x": {"preset": ["a"]}})[1] == {"x": ("x-a-1",)}


@pytest.mark.parametrize("seeds", ["3", 0, -1, True, 1.5, 501, 10**9, 2**63])
def test_the_number_of_seeds_is_checked(seeds: object) -> None:
    expected = "models.x.seeds: expected a whole number from 1, and at most 1000 models of one name"
    with pytest.raises(InputError, match=f"^{expected}, found {seeds!r}$"):
        expand_models({"x": {"preset": "a,b", "seeds": seeds}})
    assert len(expand_models({"x": {"preset": "a,b", "seeds": 500}})[0]) == 1000


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"preset": "a", "seeds": 2, "seed": 7}, "models.x.seed: several models have the seeds 1, 2, …. Remove it"),
        ({"preset": "a,a"}, "models.x.preset: a,a has a duplicate"),
    ],
)
def test_settings_that_a_group_cannot_have_are_errors(entry: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        expand_models({"x": entry})


def test_two_entries_cannot_make_models_of_the_same_name() -> None:
    single, group = {"preset": "a"}, {"preset": "a", "seeds": 2}
    for entries in ({"x-a-1": single, "x": group}, {"x": group, "x-a-1": single}):
        with pytest.raises(InputError, match=r"models\.x: another entry also makes a model 'x-a-1'"):
            expand_models(entries)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N=neural:many", ["N1=neural:many-a-1", "N2=neural:many-b-1"]),
        ("N=neural:many[logprob,worst]", ["N1=neural:many-a-1[logprob,worst]", "N2=neural:many-b-1[logprob,worst]"]),
        ("N=neural:many/forward", ["N1=neural:many-a-1/forward", "N2=neural:many-b-1/forward"]),
        ("N=ensemble:many,other", ["N=ensemble:many-a-1,many-b-1,other"]),
        ("N=agreement:many,back", ["N1=agreement:many-a-1,back", "N2=agreement:many-b-1,back"]),
        ("N=neural:single", ["N=neural:single"]),
        ("N=length", ["N=length"]),
    ],
)
def test_a_feature_of_a_group_expands_to_its_models(text: str, expected: list[str]) -> None:
    assert expand_feature(parse_requests([text])[0], GROUPS) == parse_requests(expected)


def test_pairs_of_groups_of_different_sizes_are_an_error() -> None:
    with pytest.raises(InputError, match="groups of 2 and 3 models, expected groups of equal size"):
        expand_feature(parse_requests(["N=agreement:many,three"])[0], GROUPS)


@pytest.mark.slow
def test_one_command_trains_several_models(command: Command, write: Write, tmp_path: Path) -> None:
    source, target = write("s", "a b\nb a\n" * 8), write("t", "x y\ny x\n" * 8)
    corpus = ("--source", source, "--target", target, "--dev-source", source, "--dev-target", target)
    small = ("--set", "embedding_size=4", "hidden_size=4", "attention_size=4", "epochs=1")
    arguments = ("--preset", "rnnsearch,cohn-align", "--seeds", 1, "--output", tmp_path / "many", *corpus, *small)
    status, _, err = command("train", *arguments)
    assert status == 0, err
    assert {folder.name for folder in (tmp_path / "many").iterdir()} == {"rnnsearch-1", "cohn-align-1"}
    for seeds in (0, 10**9):
        status, _, err = command("train", *arguments[:2], "--seeds", seeds, *arguments[4:])
        assert (status, "seeds: expected a whole number from 1" in err) == (2, True)
