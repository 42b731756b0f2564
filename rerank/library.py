"""The steps of a reranking as functions for other programs; `rerank` itself exports them.

Files are the interchange, as between commands: what a step makes is a file or a folder that the caller names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import moses_io.nbest
from features.models.training import request as training
from moses_io.files.errors import InputError, shown
from moses_io.nbest import SentenceList
from moses_io.weights import Weights, read_weights, weight_files
from rerank.commands.arguments import check_paths
from rerank.reranker.inputs import (
    Text,
    check_types,
    features_of,
    input_of,
    mapping_of,
    optional_path_of,
    path_of,
    paths_of,
)

if TYPE_CHECKING:
    from rerank.metrics.evaluation import Evaluation
    from rerank.metrics.filters import Filters
    from rerank.tuning.gain import Gain
    from rerank.tuning.tuning_set import Lists


@dataclass(frozen=True)
class TrainedModel:
    """What a training made.

    Attributes:
        folders: of the model; of two with a preset whose directions train together.
        perplexities: of each on dev, a word with </s>, the best that an epoch reached.
    """

    folders: tuple[Path, ...]
    perplexities: tuple[float, ...]


@dataclass(frozen=True)
class TunedWeights:
    """What a tuning found.

    Attributes:
        weights: of all features by name, one for each value; as they stand in the file.
        gain: the metric before and after, and out of fold.
    """

    weights: Weights
    gain: "Gain"


def read_nbest(nbest: Text) -> Iterator[SentenceList]:
    """Yield the candidates of one sentence after the other.

    Args:
        nbest: a list as Moses wrote it; a path, or its lines.

    Returns:
        Lists of `hypotheses`, each with its `text`, its `dense` and `sparse` features and its `total`, in the order of
        the list; `sentence` is the id, from 0.

    Raises:
        InputError: a line that cannot be read, or does not fit those before; where the list is read.
    """
    return moses_io.nbest.read_nbest(input_of(nbest, "<nbest>"))


def train(
    preset: str,
    source: str | Path,
    target: str | Path,
    *,
    dev_source: str | Path,
    dev_target: str | Path,
    folder: str | Path,
    backward: bool = False,
    right_to_left: bool = False,
    paper_sizes: bool = False,
    start_from: str | Path = "",
    resume: bool = False,
    device: str = "auto",
    alignments: str | Path = "",
    **settings: Any,
) -> TrainedModel:
    """Train a model on a corpus into a folder.

    Args:
        preset: a name that `moses-rerank presets` lists.
        source: path of the source side, one tokenized sentence a line.
        target: path of the target side, the language of the lists.
        dev_source: path of the source side that decides when to stop.
        dev_target: path of its target side.
        folder: to make.
        backward: train p(source|target) instead of p(target|source).
        right_to_left: read each target sentence from its last word to its first.
        paper_sizes: take sizes and training of the preset's paper.
        start_from: folder of a trained model to start from.
        resume: go on with the training in `folder`, if it was killed; else begin it.
        device: `auto` (a GPU if there is one), `cpu` or `cuda`.
        alignments: path of the links between source and target, a line a pair, as `0-0 1-2`.
        settings: what differs from the preset, such as `hidden=512, terms=["markov"]`.

    Raises:
        InputError: an unknown name, a value out of range, files that do not fit, or a folder that is not empty.
    """
    check_types(bool, backward=backward, right_to_left=right_to_left, paper_sizes=paper_sizes, resume=resume)
    request = training.TrainingRequest(preset, backward, right_to_left, paper_sizes, settings)
    files = _training_files(source, target, dev_source, dev_target, alignments)
    start, output = optional_path_of(start_from, "start_from"), path_of(folder, "folder")
    training.train_model(request, files, output, device, start, resume)
    folders = [Path(output, name) for name in request.folders]
    return TrainedModel(tuple(folders), tuple(map(training.best_perplexity, folders)))


def _training_files(
    source: object, target: object, dev_source: object, dev_target: object, alignments: object
) -> training.TrainingFiles:
    links = optional_path_of(alignments, "alignments")
    corpus = training.ParallelFiles(path_of(source, "source"), path_of(target, "target"), alignment=links)
    dev = training.ParallelFiles(path_of(dev_source, "dev_source"), path_of(dev_target, "dev_target"))
    return training.TrainingFiles(corpus, dev=dev)


def score(
    nbest: str | Path,
    source: str | Path,
    features: Mapping[str, str],
    output: str | Path,
    *,
    device: str = "auto",
    precision: str = "fp32",
    cache: str | Path = "",
) -> None:
    """Write a list with features at the end of its third field, for `tune`; all else stays byte for byte.

    Args:
        nbest: path of a list as Moses wrote it.
        source: path of its source; line k belongs to id k, from 0.
        features: `KIND[:ARG]` by label, such as `{"NMT": "neural:models/forward"}`.
        output: list to write; a name in `.gz`, `.bz2` or `.xz` is packed.
        device: `auto` (a GPU if there is one), `cpu` or `cuda`.
        precision: of the products of models, `fp32` or `bf16`.
        cache: folder of the values that models gave before; empty for none.

    Raises:
        InputError: an unknown kind, a label that the list has already, an id beyond the source, or a value that is not
            finite.
    """
    from features.feature import Resources
    from features.request import labelled_requests
    from rerank.lists.append import add_features

    listed, text, written = path_of(nbest, "nbest"), path_of(source, "source"), path_of(output, "output")
    requests = labelled_requests(features_of(features))
    resources = Resources(device, precision, optional_path_of(cache, "cache"))
    check_paths([listed, text, *(path for request in requests for path in request.files)], {"output": written})
    add_features(listed, text, requests, written, resources)


def tune(
    nbest: str | Path | Sequence[str | Path],
    references: str | Path | Sequence[str | Path],
    *,
    start: str | Path,
    output: str | Path,
    filters: str = "",
    folds: int = 0,
    fallback: bool = False,
    choose: str | Path | None = None,
    choose_references: str | Path | Sequence[str | Path] = (),
    **settings: Any,
) -> TunedWeights:
    """Find the weights that make the best candidates win.

    Args:
        nbest: path of the scored list of the tuning set; of several, which are pooled.
        references: path of its references, or of several; line k belongs to id k, from 0.
        start: path of the weights to start from, such as `moses.ini`; features without one begin at 0.
        output: ini to write, with all weights.
        filters: what is done to text before the metric, such as `debpe,detokenize`.
        folds: tell, on so many folds, what the features without start weights gain; 0 for none.
        fallback: keep the start weights if they gain nothing there; `tuner="auto"` has a rule of its own.
        choose: path of a scored list for `tuner="auto"` to choose on, instead of folds.
        choose_references: path of its references, or of several.
        settings: of the tuning, such as `metric="bleu+chrf:0.7,0.3", tuner="mert", runs=20, seed=1, sign=["LM0:+"],
            freeze=["Distortion0"]`, and those of the tuner; see docs/tuning.md.

    Raises:
        InputError: a file that cannot be read, an unknown setting, or a metric that is 0 whatever the weights were.
    """
    from rerank.metrics.filters import Filters
    from rerank.tuning import tune as tuning
    from rerank.tuning.tuning_set import Lists

    begin, written = path_of(start, "start"), path_of(output, "output")
    lists = Lists(paths_of(nbest, "nbest"), paths_of(references, "references"), Filters(filters))
    others = _choose_lists(choose, choose_references, lists.filters)
    read = [path for each in (lists, *others) for path in (*each.nbest, *each.references)]
    check_paths([*read, *weight_files(begin)], {"output": written})
    gain = tuning.tune(
        lists, begin, tuning.settle(settings), written, tuning.Caution(folds=folds, fallback=fallback), *others
    )
    return TunedWeights(read_weights(written), gain)


def _choose_lists(nbest: object, references: object, filters: "Filters") -> "list[Lists]":
    """Return the list that `tuner="auto"` chooses on, if there is one; an `InputError` for one part of it alone."""
    from rerank.tuning.tuning_set import Lists

    if (nbest is None) != (isinstance(references, tuple) and not references):
        raise InputError("expected choose and choose_references together")
    if nbest is None:
        return []
    return [Lists([path_of(nbest, "choose")], paths_of(references, "choose_references"), filters)]


def evaluate(
    systems: Mapping[str, Text],
    *references: Text,
    nbest: str | Path | None = None,
    filters: str = "",
    tokenize: str = "none",
) -> "Evaluation":
    """Measure translations: BLEU, chrF, TER by sacreBLEU, and whether they differ by more than chance.

    Args:
        systems: translations by the name of the system, a path or lines; the others are tested against the first.
        references: one or several, each a path or lines.
        nbest: path of a list, whose best candidates are measured, too.
        filters: what is done to all texts before, such as `debpe,detokenize`.
        tokenize: sacreBLEU's tokenizer for BLEU; `none` counts the tokens that Moses sees.

    Returns:
        Its `scores[system][metric]` have a `value`, as sacreBLEU prints it, and a `p_value`, None for the first system.

    Raises:
        InputError: another number of lines than the references have, or marks of segmentation in a text.
    """
    from rerank.metrics.filters import Filters
    from rerank.report.listed import evaluate_files

    check_types(str, tokenize=tokenize)
    texts = mapping_of(systems, "systems", "translations by the name of the system")
    if not texts or not references:
        raise InputError(f"expected a system and a reference, found {len(texts)} and {len(references)}")
    answers = [input_of(text, f"<reference {number}>") for number, text in enumerate(references)]
    lines = {name: input_of(text, f"<{name}>", f"systems, {shown(name)}") for name, text in texts.items()}
    listed = None if nbest is None else path_of(nbest, "nbest")
    return evaluate_files(lines, answers, listed, Filters(filters), tokenize)
