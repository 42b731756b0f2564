"""What the models of a study have learned: perplexities on dev and on test sets."""

from collections.abc import Mapping, Sequence

from features.models.training.request import ParallelFiles
from moses_io.json_files import write_json
from moses_io.text import read_parallel, tokens


def measure(folders: Sequence[str], texts: Mapping[str, ParallelFiles], device: str, output: str) -> None:
    """Write, as JSON, the number of weights of each model, and its perplexities by the names of texts.

    Args:
        folders: of models; of two that were trained together, both.
        texts: what they predict.
        device: `auto`, `cpu` or `cuda`.
        output: file to write.

    Raises:
        InputError: a folder that is no model, or texts that do not fit each other.
    """
    from features.models.device import find_device
    from features.models.scoring.members import Members, parameters_of, perplexity_of

    pairs = {
        name: [(tuple(tokens(one)), tuple(tokens(other))) for one, other in read_parallel(files.source, files.target)]
        for name, files in texts.items()
    }
    measured = []
    for folder in folders:
        model = Members([folder], find_device(device), "measure them one by one")
        perplexities = {name: perplexity_of(model, each) for name, each in pairs.items()}
        measured.append({"parameters": parameters_of(model.models[0]), "perplexity": perplexities})
    write_json(output, measured, indent=1)
