"""Safety of Hugging Face model folders, and the error if the package transformers is missing."""

import contextlib
import json
import shutil
import sys
from pathlib import Path

import pytest

from features.feature import Resources
from features.feature_set import FeatureSet
from features.request import parse_requests
from moses_io.files.errors import InputError


def test_a_missing_package_transformers_is_an_error_of_feature_hf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match="feature 'hf' needs the package transformers"):
        FeatureSet(parse_requests(["hf:x"]), Resources("cpu"))


class Evil:
    """An object that creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("way", ["model", "tokenizer", "pickle"])
def test_code_in_the_folder_of_a_pretrained_model_is_not_run(transformer: Path, tmp_path: Path, way: str) -> None:
    """Neither custom classes nor pickled objects are executed."""
    import pickle

    folder, ran = tmp_path / "folder", tmp_path / "ran"
    shutil.copytree(transformer, folder)
    (folder / "evil.py").write_text(f"open({str(ran)!r}, 'w').close()\nclass Evil: ...\n")
    if way == "pickle":
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"x": Evil(ran)}, protocol=2))
    else:
        path = folder / ("config.json" if way == "model" else "tokenizer_config.json")
        names = ("AutoConfig", "AutoModelForSeq2SeqLM", "AutoTokenizer")
        values = {"auto_map": dict.fromkeys(names, "evil.Evil"), "model_type": "evil", "tokenizer_class": "Evil"}
        path.write_text(json.dumps(json.loads(path.read_text()) | values))
    expected_error = pytest.raises(InputError, match="folder: not a model that transformers can read")
    with (
        contextlib.suppress(InputError) if way == "tokenizer" else expected_error
    ):  # a tokenizer may load without its class
        FeatureSet(parse_requests([f"hf:{folder}"]), Resources("cpu"))
    assert not ran.exists()
