from dataclasses import asdict

import pytest

from features.models.presets import PRESETS, find_preset, resolve
from features.models.settings import RENAMED, Architecture, Training, check, override
from features.models.tables import TABLES, find
from moses_io.files.errors import InputError

TRANSFORMER = {"encoder": "transformer", "decoder": "transformer"}


def test_settings_are_assigned_to_architecture_or_training() -> None:
    keys = {"embedding_size": "1", "hidden_size": "2", "attention_size": "3", "decoder_layers": "2"}
    values = {"epochs": "4", "updates": "5", "batch_size": "6", "dropout": "0.5", "learning_rate": "1e-3", "seed": "7"}
    architecture, training = override(Architecture(), Training(), keys | values)
    assert architecture == Architecture(embedding_size=1, hidden_size=2, attention_size=3, decoder_layers=2)
    assert training == Training(epochs=4, updates=5, batch_size=6, dropout=0.5, learning_rate=0.001, seed=7)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hiden", "3", "unknown setting 'hiden'. Did you mean 'hidden_size'?"),
        (
            "attention_terms",
            "x",
            "setting 'attention_terms': unknown value 'x'. Known: position, markov, fertility, previous-word, memory",
        ),
        ("attention_terms", "markov,markov", "setting 'attention_terms': 'markov' occurs twice"),
        ("reverse_source", "yes", "setting 'reverse_source': unknown value 'yes'. Known: false, true"),
        ("hidden_size", "3.5", "setting 'hidden_size': expected a whole number, found '3.5'"),
        ("learning_rate", "fast", "setting 'learning_rate': expected a number, found 'fast'"),
        ("learning_rate", "nan", "setting 'learning_rate': expected a number, found 'nan'"),
        ("learning_rate", "1_0", "setting 'learning_rate': expected a number, found '1_0'"),
        ("hidden_size", "1_000", "setting 'hidden_size': expected a whole number, found '1_000'"),
        ("epochs", "²", "setting 'epochs': expected a whole number, found '²'"),
        ("hidden_size", "0", "setting 'hidden_size': 0 is out of range"),
        ("dropout", "1", "setting 'dropout': 1 is out of range"),
        ("batch_size", "-1", "setting 'batch_size': -1 is out of range"),
    ],
)
def test_wrong_settings_are_errors(key: str, value: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        override(Architecture(), Training(), {key: value})
    assert message in str(caught.value)


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_is_an_error_that_names_the_new_one(old: str, new: str) -> None:
    with pytest.raises(InputError, match=f"^unknown setting '{old}'. It is now '{new}'$"):
        override(Architecture(), Training(), {old: "1"})
    assert new in {**asdict(Architecture()), **asdict(Training())}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"decoder": "no-attention", "attention_terms": "markov"}, "decoder 'no-attention' has no scores, terms"),
        ({"decoder": "no-attention", "objectives": "fertility"}, "decoder 'no-attention' has no scores"),
        (
            {"attention_score": "general", "attention_terms": "markov"},
            "attention_terms need attention_score=additive, not 'general'",
        ),
        ({"attention_score": "general", "granularity": "fine"}, "granularity 'fine' needs attention_score=additive"),
        ({"attention_score": "dot"}, "attention_score 'dot' needs equal sizes of queries and annotations"),
        (
            {"attention_score": "location", "attention_window": "local-m"},
            "attention_score 'location' needs attention_window=global",
        ),
        ({"input_feeding": "output"}, "input_feeding needs decoder 'attend-after'"),
        ({"decoder": "attend-after", "softmax_input": "state"}, "softmax_input 'state' needs decoder 'attend-first'"),
        ({"decoder": "attend-between"}, "decoder 'attend-between' needs decoder_layers=2 or more"),
        ({"decoder": "attend-between", "decoder_layers": "2", "attention_terms": "markov"}, "no attention_terms"),
        (
            {"decoder": "attend-between", "decoder_layers": "2", "attention_window": "local-m"},
            "attention_window=global",
        ),
        ({"decoder": "attend-between", "decoder_layers": "2", "granularity": "fine"}, "granularity=word"),
        ({"decoder": "transformer"}, "encoder 'transformer' and decoder 'transformer' need each other"),
        ({"encoder": "transformer"}, "encoder 'transformer' and decoder 'transformer' need each other"),
        (TRANSFORMER, "equal embedding_size and hidden_size"),
        (TRANSFORMER | {"hidden_size": "128", "attention_heads": "3"}, "a multiple of attention_heads"),
        (TRANSFORMER | {"attention_terms": "markov", "cell": "gru"}, "does not use cell, attention_terms"),
        ({"reverse_source": "true"}, "reverse_source needs encoder=unidirectional"),
        ({"encoder": "unidirectional", "decoder_layers": "2"}, "needs equal decoder_layers and encoder_layers"),
    ],
)
def test_incompatible_settings_of_an_architecture_are_errors(values: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        override(Architecture(), Training(), values)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"bpe_dropout": "0.1"}, "bpe_dropout needs bpe"),
        (
            {"r_drop": "1", "dropout": "0"},
            "r_drop compares passes with different dropout: it needs dropout or word_dropout",
        ),
        (
            {"r_drop": "1", "guided_alignment": "1"},
            "r_drop cannot be combined with",
        ),
        ({"r_drop": "1", "lexicon": "bias"}, "r_drop cannot be combined with"),
    ],
)
def test_incompatible_settings_of_training_are_errors(values: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        override(Architecture(), Training(), values)


def test_lists_and_booleans_from_text_and_from_toml() -> None:
    for terms, attend in (("position,markov", "false"), (["position", "markov"], False)):
        architecture, _ = override(Architecture(), Training(), {"attention_terms": terms, "attend_bos_eos": attend})
        assert architecture == Architecture(attention_terms=("position", "markov"), attend_bos_eos=False)
    assert (
        override(Architecture(attention_terms=("markov",)), Training(), {"attention_terms": ""})[0].attention_terms
        == ()
    )


@pytest.mark.parametrize(("table", "name"), [(table, name) for table, rows in TABLES.items() for name in rows])
def test_every_row_of_a_table_names_an_existing_part(table: str, name: str) -> None:
    assert find(table, name)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_compatible_settings(name: str) -> None:
    preset = find_preset(name)
    small, _ = resolve(preset, False, {})
    paper, training = resolve(preset, True, {"seed": 3})
    check(small)
    assert training.seed == 3
    assert paper.hidden_size >= 512
    assert preset.pretrained <= bool(small.objectives)


PAPERS = [
    ("encdec-reverse", "reverse_source", True, "Luong et al. 2015, table 1"),
    ("luong-global-dot", "hidden_size", 1000, "Luong et al. 2015, section 4.1"),
    ("luong-global-dot", "decoder_layers", 4, "Luong et al. 2015, section 4.1"),
    ("luong-global-dot", "input_feeding", "output", "Luong et al. 2015, section 3.3"),
    ("luong-global-location", "input_feeding", "none", "Luong et al. 2015, table 1"),
    ("luong-local-p-general", "window_radius", 10, "Luong et al. 2015, section 4.1"),
    ("luong-local-p-general", "attention_window", "local-p", "Luong et al. 2015, section 3.2"),
    ("luong-local-m-general", "attention_score", "general", "Luong et al. 2015, section 3.1"),
    ("cohn-align", "attention_terms", ("position", "markov", "fertility"), "Cohn et al. 2016, sections 3.1 to 3.3"),
    ("cohn-align", "attention_size", 256, "Cohn et al. 2016, section 4"),
    ("cohn-align-glofer", "objectives", ("fertility",), "Cohn et al. 2016, section 3.3"),
    ("choi-baseline", "embedding_size", 620, "Choi et al. 2018, section 4.3"),
    ("choi-baseline", "bpe", 30000, "Choi et al. 2018, section 4.1"),
    ("choi-atty", "attention_terms", ("previous-word",), "Choi et al. 2018, section 2.1"),
    ("choi-atty2d", "granularity", "fine", "Choi et al. 2018, section 3"),
    ("choi-context-atty2d", "contextual_embeddings", True, "Choi et al. 2018, section 4.3"),
    ("yang-rnnsearch", "input_feeding", "context", "Yang et al. 2017, equation 4"),
    ("yang-rnnsearch", "softmax_bias", False, "Yang et al. 2017, equation 9"),
    ("yang-window1", "term_radius", 0, "Yang et al. 2017, section 3.2"),
    ("yang-window11", "term_radius", 5, "Yang et al. 2017, section 3.2"),
    ("yang-window11", "memory_size", 500, "Yang et al. 2017, section 3.2"),
    ("transformer", "feedforward_size", 2048, "Vaswani et al. 2017, table 3"),
    ("transformer", "attention_heads", 8, "Vaswani et al. 2017, table 3"),
]


@pytest.mark.parametrize(("preset", "setting", "value", "paper"), PAPERS)
def test_presets_have_the_settings_of_their_papers(preset: str, setting: str, value: object, paper: str) -> None:
    architecture, training = resolve(find_preset(preset), True, {})
    assert (asdict(architecture) | asdict(training))[setting] == value, paper


def test_the_presets_of_cohn_et_al_have_learned_initial_states() -> None:
    """Cohn et al. 2016, equation 1, footnote 1."""
    learned = {name for name in PRESETS if find_preset(name).architecture.initial_state == "learned"}
    assert learned == {name for name in PRESETS if name.startswith("cohn-")}


def test_an_unknown_preset_is_an_error() -> None:
    with pytest.raises(InputError, match=r"unknown preset 'rnnserch'. Did you mean 'rnnsearch'"):
        find_preset("rnnserch")
