from features.formulas import by_length, count_ngrams


def test_ngrams_are_counted_up_to_the_order() -> None:
    assert dict(count_ngrams(["a", "b", "a"])) == {
        ("a",): 2, ("b",): 1, ("a", "b"): 1, ("b", "a"): 1, ("a", "b", "a"): 1
    }  # fmt: skip
    assert not count_ngrams([])


def test_sums_by_length() -> None:
    assert by_length([(("a",), 0.5), (("a", "b"), 2.0), (("b",), 0.25)]) == [0.75, 2.0, 0.0, 0.0]
