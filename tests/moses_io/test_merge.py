"""Lists of several systems: which candidates are one, what stands for features that a system does not know."""

from collections.abc import Callable
from pathlib import Path

from moses_io.merge import merge_lists
from moses_io.nbest import read_nbest

Write = Callable[[str, str | bytes], Path]

MOSES = """\
0 ||| a  b  ||| LM0= -3 -0.50 s_x= 1 TM0= 1e-2 ||| -7.50 ||| 0-0 1-1 
0 ||| a c ||| LM0= -5 0.25 TM0= 3 ||| -9 ||| 0-0 
0 ||| a b ||| LM0= -4 -1 TM0= 2 ||| -8 ||| 0-1
2 ||| d ||| LM0= -1 -2 TM0= 1 ||| 4 |||
"""
BEAM = """\
0 ||| a c ||| NMT= -0.10 LM0= 7 7 s_y= 2 ||| -1 ||| 5-5
0 ||| e ||| s_z= 3 NMT= -2.25 ||| -2 ||| 6-6
1 ||| f g ||| NMT= -4 LM0= 1 1 ||| -3.0
1 ||| f ||| NMT= -3 LM0= 1 1 ||| -5
"""


def merged(write: Write, first: str, second: str, missing: str | float = "lowest") -> list[str]:
    lists = {"moses": str(write("first", first)), "NMT": str(write("second", second))}
    output = write("merged", "")
    merge_lists(lists, str(output), missing)
    list(read_nbest(str(output)))
    return output.read_text().split("\n")[:-1]


def test_lines_by_hand(write: Write) -> None:
    """LM0 of `e` is the lowest of sentence 0, each component for itself; TM0 of sentence 1 the lowest of all lines."""
    beam = BEAM.replace("s_z= 3 NMT= -2.25", "s_z= 3 NMT= -2.25 LM0= 1 1").replace(
        "LM0= 1 1 ||| -2", "LM0= 9 -9 ||| -2"
    )
    assert merged(write, MOSES, beam) == [
        "0 ||| a  b  ||| LM0= -3 -0.50 s_x= 1 TM0= 1e-2 NMT= -2.25 Frommoses= 1 FromNMT= 0 ||| -7.50 ||| 0-0 1-1 ",
        "0 ||| a c ||| LM0= -5 0.25 TM0= 3 NMT= -0.10 Frommoses= 1 FromNMT= 1 s_y= 2 ||| -9 ||| 0-0 ",
        "0 ||| a b ||| LM0= -4 -1 TM0= 2 NMT= -2.25 Frommoses= 1 FromNMT= 0 ||| -8 ||| 0-1",
        "0 ||| e ||| LM0= 9 -9 TM0= 0.01 NMT= -2.25 Frommoses= 0 FromNMT= 1 s_z= 3 ||| -9 ||| 6-6",
        "1 ||| f g ||| LM0= 1 1 TM0= 0.01 NMT= -4 Frommoses= 0 FromNMT= 1 ||| -3.0",
        "1 ||| f ||| LM0= 1 1 TM0= 0.01 NMT= -3 Frommoses= 0 FromNMT= 1 ||| -5",
        "2 ||| d ||| LM0= -1 -2 TM0= 1 NMT= -4 Frommoses= 1 FromNMT= 0 ||| 4 |||",
    ]
