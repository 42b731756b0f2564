"""Exchange with Moses' tuners: export a list for kbmira, mert and pro, and import their weights."""

import re
import shlex
from pathlib import Path

import numpy as np

from features.arrays import Array
from features.progress import log
from features.table import is_fixed
from moses_io.extractor import Block, write_block
from moses_io.files.errors import InputError, printable, shown
from moses_io.files.streams import name_of, open_output
from moses_io.files.text import number, read_lines, tokens, write_text
from moses_io.weights import (
    WeightFile,
    Weights,
    read_dense_weights,
    read_sparse_weights,
    read_weight_file,
    write_weights,
)
from rerank import __version__
from rerank.linear.candidates import Candidates, FeatureSpace
from rerank.linear.weights import load_weight_file, log_unmatched, match_initial_weights, with_unseen
from rerank.metrics.metric import Metric
from rerank.tuning.tuning_set import Lists, TuningSet

SCRIPT = """\
#!/bin/sh
# Moses' tuners on this folder; set MOSES to the folder of its programs. Then:
#   moses-rerank import-weights {folder} {result} --output weights.ini
set -e
MOSES="$(CDPATH= cd -- "${{MOSES:?set it to the folder of the compiled programs of Moses}}" && pwd)"
cd -- "$(dirname -- "$0")"
run="${{1:-kbmira}}"
case "$run" in
kbmira) "$MOSES/kbmira" --dense-init init.dense{sparse_kbmira} --ffile features.dat --scfile scores.dat -o kbmira.out ;;
mert) "$MOSES/mert" -d {dimensions} -n 20 -r 1 --sctype BLEU --scconfig case:true --ffile features.dat \\
    --scfile scores.dat --ifile init.opt{sparse_mert} 2> mert.log || {{
        status=$?
        echo "mert: exit status $status, mert.log ends with:" >&2
        tail -n 20 mert.log >&2
        exit $status
    }} ;;
pro) "$MOSES/pro" -S scores.dat -F features.dat -o pro.data
    megam -fvals -maxi 30 -nobias binary pro.data > pro.out ;;
*) echo "usage: $0 [kbmira|mert|pro]" >&2; exit 2 ;;
esac
"""
INITIAL_FILE = "initial.ini"
"""File of the initial weights by name, including weights that Moses neither prints nor tunes."""

MIN_SUM = 1e-9
"""Minimum sum of absolute dense weights, as in mert-moses.pl."""

_BEST = "Best point: "


def export(lists: Lists, initial_weights: str, folder: str) -> None:
    """Write a folder with the files for Moses' tuners and a script, `tune.sh`, that runs them.

    The files are features.dat, scores.dat, init.dense, init.opt, sparse-weights (if there are sparse features) and
    `INITIAL_FILE`, for `import_weights`.

    Args:
        lists: lists and references to tune on.
        initial_weights: path of the initial weights.
        folder: path of the new folder.

    Raises:
        InputError: the folder exists or cannot be made, Moses' tools would misread the name of a feature, or a feature
            has a fixed weight, which they would tune.
    """
    metric = Metric("bleu")
    tuning_set = lists.read(metric)
    for message in tuning_set.advice:
        log.warning(message)
    space = tuning_set.candidates.space
    content = load_weight_file(initial_weights)
    weights = match_initial_weights(content, space)
    log_unmatched(space, weights, initial_weights)
    for name, _ in space.dense:
        feature = f"{', '.join(map(name_of, lists.nbest))}: feature {shown(name)}"
        if "_" in name:
            raise InputError(f"{feature}: rename it, because Moses' tools take a name with '_' for a sparse feature")
        if is_fixed(name):
            tuned = "has a fixed weight, but Moses' tuners tune all features. Export a list without it"
            raise InputError(f"{feature} {tuned}")
    path = Path(folder)
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from None
    _write_blocks(path, tuning_set)
    vector = space.vector(weights)
    _write_initial(path, space, vector)
    write_weights(str(path / INITIAL_FILE), with_unseen(space.weights(vector), weights, space), [], content.untuneable)
    signature = f"export|{metric.signature}|{lists.signature}|version:{__version__}"
    log.info(f"{folder}/tune.sh runs Moses' tuners. Signature: {signature}")


def _write_blocks(folder: Path, tuning_set: TuningSet) -> None:
    """Write features.dat and scores.dat in the extractor's format, candidates in list order."""
    candidates = tuning_set.candidates
    names = tuple(f"{name}_{index}" for name, count in candidates.space.dense for index in range(count))
    with open_output(str(folder / "features.dat")) as features, open_output(str(folder / "scores.dat")) as scores:
        for index, sentence in enumerate(candidates.sentences.tolist()):
            rows = range(candidates.offsets[index], candidates.offsets[index + 1])
            dense = tuple(tuple(candidates.dense[row].tolist()) for row in rows)
            sparse = tuple(_sparse(candidates, row) for row in rows)
            write_block(features, "FEATURES", Block("", sentence, names, dense, sparse))
            statistics = tuple(tuple(tuning_set.statistics[row].tolist()) for row in rows)
            write_block(scores, "SCORES", Block("", sentence, ("BLEU",), statistics, ({},) * len(rows)))


def _sparse(candidates: Candidates, row: int) -> dict[str, float]:
    sparse, names = candidates.sparse, candidates.space.sparse
    indices = range(sparse.offsets[row], sparse.offsets[row + 1])
    return {names[sparse.columns[index]]: float(sparse.values[index]) for index in indices}


def _write_initial(folder: Path, space: FeatureSpace, initial: Array) -> None:
    dense = initial[: space.dense_size].tolist()
    by_name = zip(space.columns, dense, strict=False)
    files = {"init.dense": "".join(f"{name}= {value:.10g}\n" for name, value in by_name)}
    begin = [*dense, 1.0] if space.sparse else dense
    rows = [begin, [0.0] * len(begin), [1.0] * len(begin)]
    files["init.opt"] = "".join(" ".join(f"{value:.10g}" for value in row) + "\n" for row in rows)
    if space.sparse:
        sparse = zip(space.sparse, initial[space.dense_size :].tolist(), strict=True)
        files["sparse-weights"] = "".join(f"{name} {value:.10g}\n" for name, value in sparse)
    kbmira, mert = (f" --sparse-{flag} sparse-weights" if space.sparse else "" for flag in ("init", "weights"))
    names = {"folder": folder, "result": folder / "kbmira.out"}
    quoted = {name: printable(shlex.quote(str(path))) for name, path in names.items()}
    # mert itself adds one dimension for all sparse weights (mert.cpp:299), so -d counts only the dense ones. init.opt
    # needs a column for the added dimension.
    files["tune.sh"] = SCRIPT.format(**quoted, dimensions=len(dense), sparse_kbmira=kbmira, sparse_mert=mert)
    for name, text in files.items():
        write_text(str(folder / name), text)
    (folder / "tune.sh").chmod(0o755)


def import_weights(folder: str, result: str, output: str) -> None:
    """Write an ini file with the weights that one of Moses' tuners found.

    The names of the features come from the folder. Weights are divided by the sum of the absolute dense weights.

    Args:
        folder: folder that `export` wrote.
        result: output of kbmira or megam (`F0 0.1`, `name 0.1`), or weights.txt or the log of mert.
        output: path of the ini file.

    Raises:
        InputError: the result does not match the features in the folder, or all dense weights are 0.
    """
    initial_weights = read_dense_weights(f"{folder}/init.dense")
    space = FeatureSpace(tuple((name, len(values)) for name, values in initial_weights.items()))
    sparse_file = f"{folder}/sparse-weights"
    sparse = read_sparse_weights(sparse_file) if Path(sparse_file).exists() else {}
    dense, named = _parse(result, space.dense_size, sparse)
    total = float(np.abs(dense).sum())
    if total < MIN_SUM:
        raise InputError(f"{result}: all dense weights are 0. The tuner found no weights with a score above 0")
    weights: Weights = space.weights(space.normalized(np.array(dense)))
    weights |= {name: (value / total,) for name, value in named.items()}
    initial = f"{folder}/{INITIAL_FILE}"
    content = read_weight_file(initial) if Path(initial).exists() else WeightFile({})
    weights = with_unseen(weights, content.weights, FeatureSpace(space.dense, tuple(sparse)))
    write_weights(output, weights, [f"imported from {Path(result).name}|version:{__version__}"], content.untuneable)


def _parse(result: str, size: int, sparse: Weights) -> tuple[list[float], dict[str, float]]:
    """Return dense weights in list order and sparse weights by name, from the output of a tuner."""
    lines = {line_number: line for line_number, line in enumerate(read_lines(result), start=1) if line.strip(" \t")}
    logged = [line.partition(_BEST)[2].partition(" => ") for line in lines.values()]
    best = [point for point, arrow, _ in logged if arrow]
    values = [number(token) for token in tokens(best[-1] if best else next(iter(lines.values()), ""))]
    if values and None not in values:
        known = [value for value in values if value is not None]
        if len(known) != size + bool(sparse):
            raise InputError(f"{result}: expected {size + bool(sparse)} weights, found {len(known)}")
        # mert tunes one common factor of all sparse weights, its last value.
        return known[:size], {name: known[-1] * value for name, (value,) in sparse.items()}
    dense, others = [0.0] * size, {}
    for line_number, line in lines.items():
        name, _, text = line.strip(" \t").replace("\t", " ").partition(" ")
        value = number(text.strip(" "))
        column = re.fullmatch("F([0-9]{1,9})", name)
        if value is None or (column and int(column.group(1)) >= size):
            raise InputError(f"{result}:{line_number}: expected 'F<k> weight' with k below {size}, or 'name weight'")
        if column:
            dense[int(column.group(1))] = value
        elif name in sparse:
            others[name] = value
        else:
            raise InputError(f"{result}:{line_number}: no feature {shown(name)} in the folder")
    if not lines:
        raise InputError(f"{result}: the file is empty")
    return dense, others
