from collections.abc import Callable
from pathlib import Path

import pytest

from moses_io.files.errors import InputError
from moses_io.weights import read_weight_file, write_weights

Write = Callable[[str, str], Path]

FEATURES = """[feature]
UnknownWordPenalty
PhrasePenalty tuneable=No
PhrasePenalty name=Other
Distortion
PhraseDictionaryMemory name=TM0 num-features=3 tuneable-components=true,0,Y path=pt
ConstrainedDecoding
ConstrainedDecoding tuneable=true
[weight]
TM0= 0.2 0.3 0.1
Distortion0= 0.5
PhrasePenalty0= 0.25
Other= 2
UnknownWordPenalty0= 1
ConstrainedDecoding0= 4
ConstrainedDecoding1= 5
"""


def test_untuneable_components_are_read_separately(write: Write) -> None:
    """Moses prints only tuneable components (moses/ScoreComponentCollection.cpp:365)."""
    content = read_weight_file(str(write("moses.ini", FEATURES)))
    assert content.weights == {
        "TM0": (0.2, 0.1), "Distortion0": (0.5,), "Other": (2.0,), "ConstrainedDecoding1": (5.0,),
    }  # fmt: skip
    assert {name: each.weights for name, each in content.untuneable.items()} == {
        "UnknownWordPenalty0": (1.0,), "PhrasePenalty0": (0.25,), "TM0": (None, 0.3, None),
        "ConstrainedDecoding0": (4.0,),
    }  # fmt: skip


def test_a_written_ini_has_all_components_and_is_read_back(tmp_path: Path, write: Write) -> None:
    content = read_weight_file(str(write("moses.ini", FEATURES)))
    written = tmp_path / "weights.ini"
    tuned = {"TM0": (7.0, 8.0), "Distortion0": (9.0,), "NMT": (1.0,)}
    write_weights(str(written), tuned, [], content.untuneable)
    again = read_weight_file(str(written))
    assert again.weights == tuned
    assert again.untuneable == content.untuneable
    _, _, lines = written.read_text().partition("[weight]\n")
    assert "TM0= 7 0.3 8\n" in lines
    assert "PhrasePenalty0= 0.25\n" in lines


@pytest.mark.parametrize(
    ("components", "message"),
    [("1,0", ":2: feature 'T' has 3 weights and tuneable-components for 2"), ("1,0,x", ":2: expected true or false")],
)
def test_wrong_tuneable_components_are_errors(write: Write, components: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_weight_file(
            str(write("moses.ini", f"[feature]\nA name=T tuneable-components={components}\n[weight]\nT= 1 2 3\n"))
        )


def test_a_component_without_a_weight_has_the_moses_default(write: Write) -> None:
    ini = write("moses.ini", "[feature]\nA name=T tuneable-components=1,0\n[weight]\nL= 1\n")
    content = read_weight_file(str(ini))
    assert (content.weights, content.untuneable["T"].weights) == ({"L": (1.0,)}, (None, 1.0))


@pytest.mark.parametrize("name", ["UnknownWordPenalty0", "UWP"])
@pytest.mark.parametrize("tuneable", [True, False])
def test_the_unknown_word_penalty_with_any_name(write: Write, tmp_path: Path, name: str, tuneable: bool) -> None:
    """A written ini is read back with the same tuneable components."""
    line = f"UnknownWordPenalty name={name}{' tuneable=true' if tuneable else ''}"
    content = read_weight_file(str(write("moses.ini", f"[feature]\n{line}\n[weight]\nL= 1\n{name}= 2\n")))
    assert (name in content.weights, name in content.untuneable) == (tuneable, not tuneable)
    write_weights(str(tmp_path / "written"), content.weights, [], content.untuneable)
    again = read_weight_file(str(tmp_path / "written"))
    assert (again.weights, again.untuneable) == (content.weights, content.untuneable)
