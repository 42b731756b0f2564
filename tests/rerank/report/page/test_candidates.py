from collections.abc import Callable
from typing import Any

from rerank.report.page.candidates import CHUNK

Explore, Unpacked = Callable[..., Any], Callable[[str], dict[str, Any]]


def chunks(explored: Any, unpacked: Unpacked) -> list[dict[int, Any]]:
    """What is packed, as it was before."""
    made = unpacked("\n".join(explored.chunks.elements()))
    return [{int(number): sentence for number, sentence in chunk.items()} for chunk in made.values()]


def test_numbers_by_hand(explore: Explore, unpacked: Unpacked) -> None:
    """Weights 0.5 of L, -1 and 1 of T, 0.25 of the sparse one; BLEU as in `test_gains_by_hand`."""
    (chunk,) = chunks(explore([["a b c", "d", "e"]]), unpacked)
    first, other = chunk[0], chunk[2]
    assert first["text"] == ["a b x", "a <b> c", "a b c"] and other["text"] == [r"a\x1b c"]
    assert (first["score"], first["rank"]) == ([1.75, 0, 2.5], [2, 3, 1])
    assert first["features"] == ["L", "T", "FromA", "FromB", "sparse"]
    assert first["parts"] == [[0.5, 1, 1], [1, -1, 1.5], [0, 0, 0], [0, 0, 0], [0.25, 0, 0]]
    assert first["bleu"] == [round(100 * 0.25**0.25, 2), round(100 * 0.125**0.25, 2), 100]
    assert (first["best"], first["lists"], other["lists"]) == (2, ["A", "A, B", "B"], ["A, B"])
    assert first["reasons"] == [["L", 0.5], ["T", 0.5], ["FromA", 0], ["FromB", 0], ["sparse", -0.25]]
    assert other["reasons"] == []


def test_both_choices_have_their_place_attention_and_alignment(explore: Explore, unpacked: Unpacked) -> None:
    (chunk,) = chunks(explore([["a b c", "d", "e"]]), unpacked)
    moses, reranked = chunk[0]["systems"].values()
    assert (moses["place"], reranked["place"]) == (0, 2)
    assert moses["attention"] == [{"model": r"fwd\x07", "weights": [[0.1, 0.9], [0.25, 0.75], [0.3333, 0.6667]]}]
    assert reranked["attention"][0]["weights"] == moses["attention"][0]["weights"][::-1]
    assert (moses["links"], moses["phrases"]) == ([[0, 0], [1, 2]], [[0, 0, 0, 1], [1, 1, 2, 2]])
    assert (reranked["links"], reranked["phrases"]) == ([], [])
    assert list(chunk[2]["systems"]) == ["moses"]


def test_links_that_fit_no_sentence_are_not_shown(explore: Explore, unpacked: Unpacked) -> None:
    beyond = "0 ||| a b x ||| L= 1 T= 1 2 FromA= 1 FromB= 0 ||| -1 ||| 9-0\n"
    (chunk,) = chunks(explore([], beyond), unpacked)
    moses, reranked = chunk[0]["systems"].values()
    assert (moses["place"], moses["links"]) == (0, [])
    assert (reranked["place"], reranked["links"], reranked["phrases"]) == (None, [], [])


def test_phrases_that_fit_no_sentence_are_not_shown(explore: Explore, unpacked: Unpacked) -> None:
    """The source has two words."""
    line = "0 ||| a b x ||| L= 1 T= 1 2 FromA= 1 FromB= 0 ||| -1 ||| {}\n"
    for field, wanted in (("0=0-1 1=2", [[0, 0, 0, 1], [1, 1, 2, 2]]), ("0=0-1 2=2", []), ("0=0-1 1=3", [])):
        (chunk,) = chunks(explore([], line.format(field)), unpacked)
        assert chunk[0]["systems"]["moses"]["phrases"] == wanted


def test_links_are_numbered_as_those_of_the_list(explore: Explore, unpacked: Unpacked) -> None:
    """One line alone might be of a chart decoder: 1-1 2-1 of a source of two words."""
    line = "{} ||| {} ||| L= 1 T= 1 2 FromA= 1 FromB= 0 ||| {} ||| {}\n"
    ours, other = line.format(0, "a b x", -1, "1-1 2-1"), line.format(0, "a b c", -2, "0-0 1-1")
    for nbest, wanted in ((ours, [[0, 0], [1, 0]]), (ours + other, [[1, 1]])):
        (chunk,) = chunks(explore([], nbest), unpacked)
        assert chunk[0]["systems"]["moses"]["links"] == wanted


def test_without_references_nothing_is_best(explore: Explore, unpacked: Unpacked) -> None:
    (chunk,) = chunks(explore([]), unpacked)
    assert (chunk[0]["bleu"], chunk[0]["best"]) == ([], None)


def test_a_list_that_was_not_merged_names_no_lists(explore: Explore, unpacked: Unpacked) -> None:
    (chunk,) = chunks(explore([], "0 ||| a b c ||| L= 1 T= 1 2 FromA= 1 ||| 0\n"), unpacked)
    assert chunk[0]["lists"] == []


def test_a_chunk_has_some_sentences_in_the_order_of_the_list(explore: Explore, unpacked: Unpacked) -> None:
    ids = [*range(50, 0, -1), 0]
    lines = (f"{number} ||| a ||| L= 1 T= 1 1 FromA= 1 FromB= 1 ||| 0\n" for number in ids)
    explored = explore([], "".join(lines), more=60)
    made = chunks(explored, unpacked)
    assert [len(chunk) for chunk in made] == [CHUNK, CHUNK, 11]
    assert [number for chunk in made for number in chunk] == ids
    assert explored.chunks.places == {number: place // CHUNK for place, number in enumerate(ids)}
