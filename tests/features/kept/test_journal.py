"""Values of models that a scoring of the same list has kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from features.feature import Sentence
from features.groups import Group
from features.kept.journal import Journal


def test_values_depend_on_the_numbering_of_links(tmp_path: Path) -> None:
    sentence = Sentence(0, ("x",), (("a",),), counts_marks=True)
    journal, values = Journal(str(tmp_path), {"L": "links"}), {"L": np.array([[0.5]])}
    journal.keep(Group([sentence], np.array([0])), values)
    assert journal.values(Group([sentence], np.array([0]))) == values
    for other in (False, None):
        assert journal.values(Group([replace(sentence, counts_marks=other)], np.array([0]))) is None
