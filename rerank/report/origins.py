"""From which lists of a merged one the chosen candidates come."""

from collections import Counter
from collections.abc import Iterable, Sequence

from features.progress import with_bar
from moses_io.hypothesis import Hypothesis
from moses_io.merge import INDICATOR, LIST_NAME, Origins
from moses_io.nbest import SentenceList, read_nbest


def lines(nbest: str, chosen: Sequence[str]) -> list[str]:
    """Return how many of the chosen candidates come from which lists, in a line; nothing for a list not merged.

    Args:
        nbest: a list; see `merged`.
        chosen: text of the choice of each sentence, by its id.
    """
    sentences = with_bar("count candidates", read_nbest(nbest), len(chosen))
    first = next(sentences)
    names = merged(first)
    if not names:
        return []
    found = [_line(first, chosen), *(_line(each, chosen) for each in sentences)]
    return [f"chosen: {origins((line for line in found if line), names)}"]


def origins(hypotheses: Iterable[Hypothesis], names: Sequence[str]) -> Origins:
    """Count candidates by the lists that have them, of those with these names."""
    return Origins(tuple(names), Counter(having(hypothesis, names) for hypothesis in hypotheses))


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


def _line(sentence_list: SentenceList, chosen: Sequence[str]) -> Hypothesis | None:
    """Return the first line of a sentence with the chosen text; all such lines have the same indicators."""
    text = chosen[sentence_list.sentence]
    return next((hypothesis for hypothesis in sentence_list.hypotheses if hypothesis.text == text), None)
