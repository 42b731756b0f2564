import pytest

from features.models.presets import PRESETS, find_preset, settle
from features.models.settings import CHOICES, Architecture, Training, check, override
from features.models.tables import TABLES, find
from moses_io.files.errors import InputError

TRANSFORMER = {"encoder": "transformer", "wiring": "transformer"}


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
        (
            "terms",
            "x",
            "setting 'terms': unknown value 'x'; known: position, markov, fertility, previous-word, memory",
        ),
        ("terms", "markov,markov", "setting 'terms': 'markov' occurs twice"),
        ("reverse", "yes", "setting 'reverse': unknown value 'yes'; known: false, true"),
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


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"wiring": "none", "terms": "markov"}, "wiring 'none' has no attention for scores, terms"),
        ({"wiring": "none", "objectives": "fertility"}, "wiring 'none' has no attention"),
        ({"score": "general", "terms": "markov"}, "terms are added inside the additive score, not inside 'general'"),
        ({"score": "general", "granularity": "fine"}, "granularity 'fine' needs the additive score"),
        ({"score": "dot"}, "score 'dot' needs queries and annotations of one size"),
        ({"score": "location", "window": "local-m"}, "score 'location' chooses among all positions"),
        ({"feed": "output"}, "only wiring 'attend-after' feeds"),
        ({"wiring": "attend-after", "output": "state"}, "only wiring 'attend-first' can put the softmax on the state"),
        ({"wiring": "attend-between"}, "wiring 'attend-between' needs two layers or more"),
        ({"wiring": "attend-between", "layers": "2", "terms": "markov"}, "no terms"),
        ({"wiring": "attend-between", "layers": "2", "window": "local-m"}, "window=global"),
        ({"wiring": "attend-between", "layers": "2", "granularity": "fine"}, "granularity=word"),
        ({"wiring": "transformer"}, "encoder 'transformer' and wiring 'transformer' need each other"),
        ({"encoder": "transformer"}, "encoder 'transformer' and wiring 'transformer' need each other"),
        (TRANSFORMER, "embedding=hidden"),
        (TRANSFORMER | {"hidden": "128", "heads": "3"}, "hidden must be a multiple of heads"),
        (TRANSFORMER | {"terms": "markov", "cell": "gru"}, "no part that the setting cell, terms could change"),
        ({"reverse": "true"}, "a bidirectional encoder reads both directions"),
        ({"encoder": "unidirectional", "layers": "2"}, "layers and encoder_layers must be equal"),
    ],
)
def test_parts_that_do_not_go_together(values: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        override(Architecture(), Training(), values)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"bpe_dropout": "0.1"}, "bpe_dropout omits merges of subwords: it needs bpe"),
        (
            {"rdrop": "1", "dropout": "0"},
            "rdrop compares passes with different dropout: it needs dropout or word_dropout",
        ),
        (
            {"rdrop": "1", "guidance": "1"},
            "rdrop compares the softmax alone: it cannot be combined with",
        ),
        ({"rdrop": "1", "lexicon": "bias"}, "rdrop compares the softmax alone: it cannot be combined with"),
    ],
)
def test_settings_of_training_that_do_not_go_together(values: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        override(Architecture(), Training(), values)


def test_lists_and_switches_from_text_and_from_toml() -> None:
    for terms, sentinels in (("position,markov", "false"), (["position", "markov"], False)):
        architecture, _ = override(Architecture(), Training(), {"terms": terms, "sentinels": sentinels})
        assert architecture == Architecture(terms=("position", "markov"), sentinels=False)
    assert override(Architecture(terms=("markov",)), Training(), {"terms": ""})[0].terms == ()


def test_every_row_of_every_table_is_there() -> None:
    for table, rows in TABLES.items():
        assert CHOICES[table] == tuple(rows)
        for name in rows:
            assert find(table, name)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_hold_together(name: str) -> None:
    preset = find_preset(name)
    small, _ = settle(preset, False, {})
    paper, training = settle(preset, True, {"seed": 3})
    check(small)
    assert training.seed == 3
    assert paper.hidden >= 512
    assert preset.pretrained <= bool(small.objectives)


def test_presets() -> None:
    assert find_preset("cohn-align").architecture.terms == ("position", "markov", "fertility")
    assert settle(find_preset("yang-window11"), True, {})[0].neighbours == 5
    learned = {name for name in PRESETS if find_preset(name).architecture.initial == "learned"}
    assert learned == {name for name in PRESETS if name.startswith("cohn-")}
    with pytest.raises(InputError, match="unknown preset 'rnnserch'; did you mean 'rnnsearch'"):
        find_preset("rnnserch")
