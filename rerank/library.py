"""Public Python functions for the steps of reranking. The package `rerank` exports them.

Files are the interchange between steps, as between commands: the caller names the file or folder that a step writes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import moses_io.nbest
from features.models.training import request as training
from features.models.training.metrics import dev_perplexity
from moses_io.files.errors import InputError, shown
from moses_io.files.text import ParallelFiles
from moses_io.nbest import SentenceList
from moses_io.weights import Weights, read_weights, weight_files
from rerank.inputs import (
    Text,
    check_paths,
    check_types,
    features_of,
    input_of,
    mapping_of,
    optional_path_of,
    path_of,
    paths_of,
    plain_value,
)

if TYPE_CHECKING:
    from moses_io.filters import Filters
    from rerank.metrics.evaluation import Evaluation
    from rerank.tuning.gain import Gain
    from rerank.tuning.tuning_set import Lists


@dataclass(frozen=True)
class TrainedModel:
    """The result of a training.

    Attributes:
        folders: model folder, or two folders for a preset whose directions train together.
        perplexities: perplexity on dev of each model's saved weights, per word including `</s>`.
    """

    folders: tuple[Path, ...]
    perplexities: tuple[float, ...]


@dataclass(frozen=True)
class TunedWeights:
    """The result of a tuning.

    Attributes:
        weights: weights of all features by name, one weight per feature value, as in the file.
        gain: metric before and after the tuning, and in cross-validation.
    """

    weights: Weights
    gain: "Gain"


def read_nbest(nbest: Text) -> Iterator[SentenceList]:
    """Yield the candidates of each sentence of an n-best list.

    Args:
        nbest: an n-best list as Moses wrote it. It is a path, or its lines.

    Returns:
        Iterator over sentences in the order of the list. `sentence` is the id, from 0, and `hypotheses` are the
        candidates, with `text`, `dense` and `sparse` features, and `total`.

    Raises:
        InputError: a line that cannot be read or does not fit the lines before. It is raised where the list is read.
    """
    return moses_io.nbest.read_nbest(input_of(nbest, "<nbest>"))


def train(
    preset: str,
    source: str | Path,
    target: str | Path,
    *,
    dev_source: str | Path,
    dev_target: str | Path,
    output: str | Path,
    backward: bool = False,
    right_to_left: bool = False,
    paper_sizes: bool = False,
    pretrained_model: str | Path = "",
    resume: bool = False,
    device: str = "auto",
    alignment: str | Path = "",
    synthetic_source: str | Path = "",
    synthetic_target: str | Path = "",
    **settings: Any,
) -> TrainedModel:
    """Train a model on a parallel corpus.

    Args:
        preset: name of a preset. `moses-rerank presets` lists them.
        source: path of the source side, one tokenized sentence per line.
        target: path of the target side, the language of the n-best lists.
        dev_source: path of the source side of dev, which decides when to stop.
        dev_target: path of the target side of dev.
        output: folder of the model, to be created.
        backward: train p(source|target) instead of p(target|source).
        right_to_left: read each target sentence from its last word to its first.
        paper_sizes: use the sizes and training settings of the preset's paper.
        pretrained_model: folder of a trained model to start from, or empty for none.
        resume: continue the training in `output` if it was killed, otherwise begin a training.
        device: `auto` (a GPU if there is one), `cpu` or `cuda`.
        alignment: path of the word alignment, one line per sentence pair, such as `0-0 1-2`, or empty for none.
        synthetic_source: path of the source side of more pairs for training, a machine translation of
            `synthetic_target`, or empty for none.
        synthetic_target: path of their target side, monolingual text.
        settings: settings that differ from the preset, such as `hidden_size=512, attention_terms=["markov"]`.

    Raises:
        InputError: an unknown name, a value out of range, files that do not fit each other, or a folder that is not
            empty.
    """
    check_types(bool, backward=backward, right_to_left=right_to_left, paper_sizes=paper_sizes, resume=resume)
    request = training.TrainingRequest(preset, backward, right_to_left, paper_sizes, _plain_values(settings))
    files = _training_files(source, target, dev_source, dev_target, alignment)
    side = optional_path_of(synthetic_source, "synthetic_source")
    other = optional_path_of(synthetic_target, "synthetic_target")
    files = replace(files, synthetic=training.synthetic_files(side, other))
    start, folder = optional_path_of(pretrained_model, "pretrained_model"), path_of(output, "output")
    training.train_model(request, files, folder, device, start, resume)
    folders = [Path(folder, name) for name in request.folders]
    return TrainedModel(tuple(folders), tuple(map(dev_perplexity, folders)))


def _plain_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain_value(value) for name, value in settings.items()}


def _training_files(
    source: object, target: object, dev_source: object, dev_target: object, alignment: object
) -> training.TrainingFiles:
    links = optional_path_of(alignment, "alignment")
    corpus = ParallelFiles(path_of(source, "source"), path_of(target, "target"), alignment=links)
    dev = ParallelFiles(path_of(dev_source, "dev_source"), path_of(dev_target, "dev_target"))
    return training.TrainingFiles(corpus, dev=dev)


def score(
    nbest: str | Path,
    source: str | Path,
    features: Mapping[str, str],
    output: str | Path,
    *,
    input_filter: str = "",
    device: str = "auto",
    precision: str = "fp32",
    cache: str | Path = "",
) -> None:
    """Append features to the third field of each line of a list, for `tune`.

    Without an input filter, all other bytes stay unchanged.

    Args:
        nbest: path of an n-best list as Moses wrote it.
        source: path of its source. Line k belongs to id k, from 0.
        features: `KIND[:ARG]` by label, such as `{"NMT": "neural:models/forward"}`.
        output: the list to write. It is compressed if its name ends in `.gz`, `.bz2` or `.xz`.
        input_filter: filters that join subwords of source and list, such as `debpe`, or empty for none.
        device: `auto` (a GPU if there is one), `cpu` or `cuda`.
        precision: precision of matrix products in models, `fp32` or `bf16`.
        cache: folder of cached model scores, or empty for none.

    Raises:
        InputError: an unknown kind or filter, a label that the list already has, an id beyond the source, or a value
            that is not finite.
    """
    from features.feature import Resources
    from features.request import labelled_requests
    from moses_io.input_filters import InputFilters
    from rerank.lists.append import add_features

    listed, text, written = path_of(nbest, "nbest"), path_of(source, "source"), path_of(output, "output")
    requests = labelled_requests(features_of(features))
    resources = Resources(device, precision, optional_path_of(cache, "cache"))
    check_paths([listed, text, *(path for request in requests for path in request.files)], {"output": written})
    add_features(listed, text, requests, written, resources, filters=InputFilters(input_filter))


def tune(
    nbest: str | Path | Sequence[str | Path],
    references: str | Path | Sequence[str | Path],
    *,
    initial_weights: str | Path,
    output: str | Path,
    filters: str = "",
    folds: int = 0,
    fallback: bool = False,
    selection: str | Path | None = None,
    selection_references: str | Path | Sequence[str | Path] = (),
    **settings: Any,
) -> TunedWeights:
    """Tune the weights so that the candidates with the highest scores maximize a metric.

    Args:
        nbest: path of the scored list of the tuning set, or paths of several lists, which are pooled.
        references: path of the references, or paths of several. Line k belongs to id k, from 0.
        initial_weights: path of the initial weights, such as `moses.ini`. Features without one start at 0.
        output: ini file to write, with all weights.
        filters: text filters that apply before the metric, such as `debpe,detokenize`.
        folds: number of folds for cross-validation of the features without initial weights (default: none, but 5 for
            `tuner="auto"`).
        fallback: keep the initial weights if these, or weights tuned without the new features, score higher in
            cross-validation (p < 0.3). No effect for `tuner="auto"`, which compares them itself.
        selection: path of another scored list, on which `tuner="auto"` compares tuners (default:
            cross-validation).
        selection_references: path of the references of `selection`, or paths of several.
        settings: settings of the tuning, such as `metric="bleu+chrf:0.7,0.3", tuner="mert", runs=20, seed=1,
            sign=["LM0:+"], freeze=["Distortion0"]`, and of the tuner. See `docs/guide/tuning.md`.

    Returns:
        The weights in `output`, and their gain.

    Raises:
        InputError: a file that cannot be read, an unknown setting, or a metric that is 0 for all weights.
    """
    from moses_io.filters import Filters
    from rerank.tuning import tune as tuning
    from rerank.tuning.tuning_set import Lists

    tuning_settings = tuning.make_tuning(_plain_values(settings))
    begin, written = path_of(initial_weights, "initial_weights"), path_of(output, "output")
    lists = Lists(paths_of(nbest, "nbest"), paths_of(references, "references"), Filters(filters))
    others = _selection_lists(selection, selection_references, lists.filters)
    read = [path for each in (lists, *others) for path in (*each.nbest, *each.references)]
    check_paths([*read, *weight_files(begin)], {"output": written})
    gain = tuning.tune(
        lists,
        begin,
        tuning_settings,
        written,
        tuning.FoldSettings(folds=plain_value(folds), fallback=fallback),
        *others,
    )
    return TunedWeights(read_weights(written), gain)


def _selection_lists(nbest: object, references: object, filters: "Filters") -> "list[Lists]":
    """Return the list on which `tuner="auto"` compares tuners, if any.

    Raise `InputError` if only one of the arguments is given.
    """
    from rerank.tuning.tuning_set import Lists

    given = isinstance(references, str | Path) or bool(references)
    if (nbest is not None) != given:
        raise InputError("expected selection and selection_references together")
    if nbest is None:
        return []
    return [Lists([path_of(nbest, "selection")], paths_of(references, "selection_references"), filters)]


def evaluate(
    systems: Mapping[str, Text],
    *references: Text,
    nbest: str | Path | None = None,
    filters: str = "",
    tokenize: str = "none",
) -> "Evaluation":
    """Evaluate translations with BLEU, chrF and TER of sacreBLEU, and with paired randomization tests.

    Args:
        systems: translations by the name of the system, as a path or lines. Other systems are tested against the first.
        references: one or several references, each as a path or lines.
        nbest: path of an n-best list whose best candidates (oracle) are also evaluated (default: none).
        filters: text filters that apply to all texts first, such as `debpe,detokenize`.
        tokenize: sacreBLEU's tokenizer for BLEU. `none` counts the tokens of Moses.

    Returns:
        The evaluation. `scores[system][metric]` has a `value`, as sacreBLEU prints it, and a `p_value`, which is None
        for the first system.

    Raises:
        InputError: systems and references differ in length, or a text has segmentation marks.
    """
    from moses_io.filters import Filters
    from rerank.report.listed import evaluate_files

    check_types(str, tokenize=tokenize)
    texts = mapping_of(systems, "systems", "translations by the name of the system")
    if not texts or not references:
        raise InputError(f"expected a system and a reference, found {len(texts)} and {len(references)}")
    answers = [input_of(text, f"<reference {number}>") for number, text in enumerate(references)]
    lines = {name: input_of(text, f"<{name}>", f"systems, {shown(name)}") for name, text in texts.items()}
    listed = None if nbest is None else path_of(nbest, "nbest")
    return evaluate_files(lines, answers, listed, Filters(filters), tokenize)
