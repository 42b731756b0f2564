"""The features that an experiment file names, and whose file it is: those that are code run for the user's own."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from features.request import runs_code
from moses_io.errors import InputError, shown
from rerank.experiment.toml import as_table


def feature_texts(experiment: Mapping[str, Any]) -> dict[str, str]:
    """Return `KIND[:ARG]` of each feature of an experiment by its label; an `InputError` names one that is no text."""
    texts = as_table(experiment.get("features", {}), "features")
    for label, text in texts.items():
        if not isinstance(text, str):
            raise InputError(f"features.{label}: expected KIND[:ARG] as text, found {shown(text)}")
    return texts


def is_own(path: str) -> bool:
    """Tell whether a file, behind all links, is in the working folder or below it, and belongs to the current user."""
    place = Path(path).resolve()
    return place.is_relative_to(Path.cwd().resolve()) and place.is_file() and place.stat().st_uid == os.geteuid()


def check_code(features: Mapping[str, str], path: str) -> None:
    """Refuse, before anything of it is loaded, a feature that is code in a file that is not the user's own.

    Args:
        features: `KIND[:ARG]` by label.
        path: of the experiment file that names them.

    Raises:
        InputError: there is one; it is named.
    """
    foreign = [label for label, text in features.items() if runs_code(text)]
    if foreign and not is_own(path):
        label = foreign[0]
        where = "in a file that is not the user's own in the working folder"
        raise InputError(f"feature {shown(label)}, {shown(features[label])}, runs code {where}; --allow-code lets it")
