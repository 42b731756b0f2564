"""From which lists of a merged one the chosen candidates come."""

from collections import Counter
from collections.abc import Sequence

from moses_io.hypothesis import Hypothesis
from moses_io.merge import INDICATOR, LIST_NAME, Origins
from moses_io.nbest import SentenceList


class Chosen:
    """Counts the chosen candidates of one sentence after the other by the lists that have them.

    Args:
        names: of the lists; see `merged`.
        texts: of each sentence the choice, by its id.
    """

    def __init__(self, names: Sequence[str], texts: Sequence[str]) -> None:
        self._names, self._texts = names, texts
        self._counts = Counter[tuple[str, ...]]()

    def add(self, candidates: SentenceList) -> None:
        """Add a sentence; all of its lines with the chosen text have the same indicators."""
        text = self._texts[candidates.sentence]
        chosen = next((hypothesis for hypothesis in candidates.hypotheses if hypothesis.text == text), None)
        if chosen:
            self._counts[having(chosen, self._names)] += 1

    def lines(self) -> list[str]:
        """Return how many come from which lists, in a line; nothing for a list not merged."""
        return [f"chosen: {Origins(tuple(self._names), self._counts)}"] if self._names else []


def having(hypothesis: Hypothesis, names: Sequence[str]) -> tuple[str, ...]:
    """Return the lists that have a candidate, of those with these names."""
    values = dict(hypothesis.dense)
    return tuple(name for name in names if values[f"{INDICATOR}{name}"] == (1.0,))


def merged(sentence_list: SentenceList) -> list[str]:
    """Return the names of the lists that a list was merged of; none unless it has two indicators or more.

    Indicators are features `FromNAME` that are 0 or 1.
    """
    dense = [dict(hypothesis.dense) for hypothesis in sentence_list.hypotheses]
    labels = [name for name in dense[0] if all(values[name] in ((0.0,), (1.0,)) for values in dense)]
    names = [label.removeprefix(INDICATOR) for label in labels if label.startswith(INDICATOR)]
    lists = [name for name in names if LIST_NAME.fullmatch(name)]
    return lists if len(lists) > 1 else []
