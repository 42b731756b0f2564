from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from features.models.alignment import Aligner
from rerank.report.attention import read_attention
from rerank.systems import align as align_module
from rerank.systems.attend import attend

Write = Callable[[str, "str | bytes"], Path]

SOURCE = "die Zeitung .\n\nim Wald gibt es eine Lampe .\nnichts\n"
MOSES = "the newspaper .\nnothing\nthere is a lamp in the wood .\n\n"
OURS = "newspaper the .\nnothing\nthere is a lamp in the wood .\nnothing\n"


def test_each_model_reads_what_each_system_chose(
    pointed: dict[str, Path], write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an aligner of the model alone does; in stretches of two pairs, equal choices once, a tab separates words."""
    monkeypatch.setattr(align_module, "STRETCH", 2)
    source, systems = str(write("source", SOURCE.replace("Wald ", "Wald\t"))), {"moses": MOSES, "reranked": OURS}
    models = {name: str(folder) for name, folder in pointed.items()}
    written = [tmp_path / "one.npz", tmp_path / "two.npz"]
    for path in written:
        attend(models, source, {name: str(write(name, text)) for name, text in systems.items()}, "cpu", str(path))
    assert written[0].read_bytes() == written[1].read_bytes()
    attentions = read_attention(str(written[0]))
    assert list(attentions) == [(number, system) for number in range(4) for system in systems]
    with np.load(written[0]) as archive:
        arrays = ["0.moses", "0.reranked", "1.moses", "2.moses", "3.moses", "3.reranked"]
        assert archive.files == ["models", "systems", *arrays]
    for name, folder in models.items():
        for system, text in systems.items():
            sentences = [tuple(line.split()) for line in SOURCE.split("\n")[:-1]]
            choices = [tuple(line.split()) for line in text.split("\n")[:-1]]
            for number, aligned in enumerate(
                Aligner([folder], "cpu").align(list(zip(sentences, choices, strict=True)))
            ):
                (weights,) = (each.weights for each in attentions[number, system] if each.model == name)
                assert weights.shape == (len(choices[number]), len(sentences[number]))
                np.testing.assert_allclose(weights, aligned.attention, rtol=0, atol=5.1e-4)
