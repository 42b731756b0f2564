import statistics

import pytest

from rerank.experiment.studies.results import (
    Replicated,
    Results,
    SystemResult,
    Table,
    TestResult,
    as_csv,
    mean_and_deviation,
)


def test_mean_and_standard_deviation() -> None:
    replicated = Replicated({1: 1.0, 2: 2.0, 5: 6.0})
    assert replicated.mean == pytest.approx(3)
    assert replicated.deviation == pytest.approx((14 / 2) ** 0.5) == pytest.approx(statistics.stdev([1, 2, 6]))
    assert mean_and_deviation(replicated) == "3.00 ± 2.65"
    assert mean_and_deviation(Replicated({1: 1.5}), "+") == "+1.50"
    assert mean_and_deviation(Replicated({})) == "-"


def test_the_gain_is_computed_per_seed() -> None:
    reranked, moses = Replicated({1: 31.0, 3: 32.5}), Replicated({1: 30.0, 3: 30.0})
    assert TestResult({"BLEU": reranked}, {"BLEU": moses}, {}).gain.values == {1: 1.0, 3: 2.5}


@pytest.mark.parametrize(
    ("unseen", "where"), [("dev, cross-validated", "dev,bleu cross-validated"), ("selection", "selection,bleu")]
)
def test_csv_rows_name_the_data_set_of_each_value(unseen: str, where: str) -> None:
    system = SystemResult(60, "both", Replicated({1: 0.5}), Replicated({}), {})
    assert as_csv(Results([], [system], "bleu", unseen, {})).splitlines()[1:] == [f"60,1,both,{where},0.5"]


def test_csv_has_moses_if_the_first_system_failed() -> None:
    failed = TestResult({"BLEU": Replicated({})}, {"BLEU": Replicated({})}, {})
    complete = TestResult({"BLEU": Replicated({1: 31.0})}, {"BLEU": Replicated({1: 30.0})}, {})
    systems = [
        SystemResult(60, name, Replicated({}), Replicated({}), {"test": result})
        for name, result in (("first", failed), ("second", complete))
    ]
    assert as_csv(Results([], systems, "bleu", "selection", {})).splitlines()[1:] == [
        "60,1,second,test,BLEU,31.0",
        "60,1,moses,test,BLEU,30.0",
    ]


def test_a_table_as_text_and_as_markdown() -> None:
    table = Table("T", ("pairs", "system", "BLEU"), [("1,500", "a|b", "3.00"), ("", "moses", "-")])
    assert table.plain() == ["T", "pairs  system  BLEU", "1,500  a|b     3.00", "       moses      -"]
    assert table.markdown() == [
        "**T**",
        "",
        "| pairs | system | BLEU |",
        "| ---: | --- | ---: |",
        "| 1,500 | a\\|b | 3.00 |",
        "|  | moses | - |",
    ]
