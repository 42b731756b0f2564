"""The sample: a generated German-English corpus with real Moses lists, weights and a language model."""

from pathlib import Path

from rerank.experiment.file import Experiment, read_experiment

FOLDER = Path(__file__).parent
"""Where the files of the sample are."""


def sample_experiment(output: str) -> Experiment:
    """Return the sample's experiment with its results in the folder `output`."""
    return read_experiment(str(FOLDER / "experiment.toml"), output)
