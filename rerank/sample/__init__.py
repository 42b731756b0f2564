"""The sample: a generated German-English corpus with n-best lists of Moses, weights and a language model."""

from pathlib import Path

from rerank.experiment.experiment import Experiment
from rerank.experiment.file import read_experiment

FOLDER = Path(__file__).parent
"""Folder of the sample's files."""


def sample_experiment(output: str) -> Experiment:
    """Return the experiment of the sample. `output` is the folder of results."""
    return read_experiment(str(FOLDER / "experiment.toml"), output)
