"""Shortlists: features that are expensive are computed only for the best candidates by all other features."""

from dataclasses import dataclass

from features.progress import with_bar
from moses_io.files.streams import open_output
from moses_io.nbest import MosesOutput, SentenceList, read_nbest
from rerank.linear.ranking import LinearModel, Ranking
from rerank.linear.weights import load_weight_file


@dataclass(frozen=True)
class ShortlistSettings:
    """Size and features of the shortlist of a reranker.

    Attributes:
        size: number of candidates of a sentence, at least 1.
        features: labels of the features that are computed for the shortlist only.
    """

    size: int
    features: tuple[str, ...]


class Shortlist:
    """Selects the candidates of a sentence that get all features.

    These are the `size` best candidates under the weights of the other features, the candidate with the highest total
    of Moses, and the candidate that Moses printed, with which reports compare the choice.
    """

    def __init__(self, weights: str, size: int) -> None:
        self._model, self._size = LinearModel(load_weight_file(weights), weights), size

    def indices(self, sentence_list: SentenceList) -> list[int]:
        """Return the indices of the selected candidates, in list order.

        Raises `InputError` if features and weights do not match.
        """
        order = Ranking(sentence_list, self._model.scores(sentence_list)).order
        printed = sentence_list.moses_choice
        also = [sentence_list.highest_total] if printed is None else [sentence_list.highest_total, printed]
        return sorted({*order[: self._size], *also})


def shorten_list(
    nbest: str, weights: str, size: int, output: str, rescored: str = "", moses_output: MosesOutput | None = None
) -> None:
    """Write the lines of a list that are in the shortlist.

    Args:
        nbest: path of the list, with all features except those of the shortlist.
        weights: path of their weights.
        size: number of candidates of a sentence.
        output: path of the shorter list.
        rescored: path of a list of the same candidates with more features, whose lines are written (default: `nbest`).
        moses_output: Moses' own output (default: the candidates with the highest totals).

    Raises:
        InputError: as `read_nbest`, `LinearModel.scores` and `MosesOutput.add_to`.
    """
    shortlist = Shortlist(weights, size)
    with open_output(output) as stream:
        lists = moses_output.add_to(read_nbest(nbest)) if moses_output else read_nbest(nbest)
        pairs = zip(lists, read_nbest(rescored), strict=True) if rescored else ((each, each) for each in lists)
        for sentence_list, other in with_bar("shorten", pairs):
            stream.writelines(other.hypotheses[index].line for index in shortlist.indices(sentence_list))
