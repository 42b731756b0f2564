import pytest

from moses_io.files.streams import Lines
from moses_io.nbest import read_nbest
from rerank.report.listed import OriginCounter, merged_list_names

MERGED = """\
0 ||| a ||| L= 0 FromA= 1 FromB= 0 FromMe= 0.5
0 ||| b ||| L= 1 FromA= 1 FromB= 1 FromMe= 1
0 ||| b ||| L= 0 FromA= 1 FromB= 1 FromMe= 0
1 ||| c ||| L= 1 FromA= 0 FromB= 1 FromMe= 0
3 ||| a ||| L= 1 FromA= 0 FromB= 1 FromMe= 0
3 ||| c ||| L= 1 FromA= 1 FromB= 0 FromMe= 0
"""


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (MERGED, ["lists of the reranked translations: 0 only in A, 2 only in B, 1 in both"]),
        (
            MERGED.replace("FromMe= 0.5", "FromMe= 0"),
            ["lists of the reranked translations: 0 only in A, 2 only in B, 0 only in Me, 1 in several"],
        ),
        (MERGED.replace("FromA=", "From="), []),
        (MERGED.replace("From", "Is"), []),
    ],
)
def test_chosen_candidates_are_counted_by_their_lists(content: str, expected: list[str]) -> None:
    """Sentence 2 has no candidates. Features with values other than 0 and 1 in sentence 0 are no indicators."""
    first, *others = read_nbest(Lines("list", content.splitlines()))
    chosen = OriginCounter(merged_list_names(first), ["b", "c", "", "a"])
    for each in (first, *others):
        chosen.add(each)
    assert chosen.lines() == expected
