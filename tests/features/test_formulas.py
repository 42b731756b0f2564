from features.formulas import count_ngrams


def test_ngrams_are_counted_up_to_the_order() -> None:
    assert dict(count_ngrams(["a", "b", "a"])) == {
        ("a",): 2, ("b",): 1, ("a", "b"): 1, ("b", "a"): 1, ("a", "b", "a"): 1
    }  # fmt: skip
    assert not count_ngrams([])
