"""Natural text that is restored from tokens, as input of pretrained models."""

from pathlib import Path

import pytest

from features.models.pretrained.options import Options
from features.models.pretrained.text import Restored
from moses_io.files.errors import InputError


@pytest.mark.parametrize(
    ("tokens", "language", "text"),
    [
        ("the man , who sleeps , isn &apos;t here .", "en", "The man, who sleeps, isn't here."),
        ("l&apos; homme dort", "fr", "L'homme dort"),
        ("a &#124; b &amp; c", "en", "A | b & c"),
        ("ein Ball@@ spiel@@ er", "de", "Ein Ballspieler"),
        ("▁a ▁ball player", "en", "A ballplayer"),
        ("the|DT man|NN sleeps|VB", "en", "The man sleeps"),
        ("either|or is one word", "en", "Either|or is one word"),
        ("", "en", ""),
        ("x\udcff", "", "X\ufffd"),
    ],
)
def test_natural_text(tokens: str, language: str, text: str) -> None:
    assert Restored(Options(), language)(tokens.split()) == text


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("tokens", "the man &apos;s dog ."),
        ("deescape", "the man 's dog ."),
        ("deescape+detokenize:en", "the man's dog."),
    ],
)
def test_other_forms_of_text(form: str, text: str) -> None:
    assert Restored(Options(text=form), "en")(["the", "man", "&apos;s", "dog", "."]) == text


def test_a_truecaser(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.write_text("Berlin (10/10)\nin (5/6) In (1)\nThe (3/5) the (2)\n")
    restored = Restored(Options(truecaser=str(model)), "en", str(model))
    assert restored(["in", "the", "berlin", "zoo"]) == "In The Berlin zoo"
    with pytest.raises(InputError, match="none: No such file"):
        Restored(Options(), "en", str(tmp_path / "none"))
    model.write_text("no counts here\n")
    with pytest.raises(InputError, match="model: not a truecasing model"):
        Restored(Options(), "en", str(model))
