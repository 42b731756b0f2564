import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from features.arrays import Array
from features.feature import Resources, Sentence
from features.feature_set import FeatureSet
from features.models.tables import VALUES
from features.request import FeatureRequest
from features.table import FEATURES
from moses_io.files.text import read_lines, tokens
from moses_io.hypothesis import parse_line
from moses_io.nbest import read_nbest

ARPA = (
    "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-2\t<unk>\n0\t<s>\t-0.5\n-1\t</s>\n-0.5\ta\t-0.25\n\n"
    "\\2-grams:\n-0.1\t<s> a\n-0.2\ta </s>\n\n\\end\\\n"
)
TEXTS = [
    ("die Nachbarinnen haben die Zeitung gekauft .", ["the neighbours bought the newspaper .", "the zorb", ""]),
    ("im Wald gibt es eine schöne Lampe .", ["there is a beautiful lamp in the forest ."]),
]
HERE = {kind: row for kind, row in FEATURES.items() if kind != "comet"}
"""Features that do not need a separate Python environment."""

SENTENCES = [
    Sentence(
        number,
        tuple(tokens(source)),
        tuple(tuple(tokens(text)) for text in hypotheses),
        tuple(
            parse_line(f"{number} ||| {text} ||| LM0= -{place}.5 TM0= 1 2 ||| {-3.0 * place} ||| {links}".encode(), 1)
            for place, text in enumerate(hypotheses)
            for links in ["0-0 " if text else ""]
        ),
    )
    for number, (source, hypotheses) in enumerate(TEXTS)
]


def load(kind: str, argument: str = "") -> FeatureSet:
    return FeatureSet([FeatureRequest("X", kind, argument)], Resources("cpu"))


def values_of(features: FeatureSet, sentences: Sequence[Sentence] = SENTENCES) -> Array:
    return features.score(sentences).columns[0].values


def arguments(sample: Path, models: dict[str, Path], folder: Path, transformer: Path) -> dict[str, str]:
    forward, backward = str(models["forward"]), str(models["backward"])
    reversed_lm, scores, lex = folder / "reversed.arpa", folder / "scores", folder / "lex.f2e"
    lex.write_text("the die 0.5\nneighbours Nachbarinnen 1\nis NULL 0.2\n")
    reversed_lm.write_text(ARPA)
    scores.write_text("1 2\n3 4\n5 6\n7 8\n" * 4)
    server = folder / "server.py"
    server.write_text(
        "import sys\nfor line in sys.stdin:\n    if line.strip():\n        print(len(line), flush=True)\n"
    )
    return {
        "neural": forward,
        "ensemble": f"{forward},{forward}",
        "agreement": f"{forward},{backward}",
        "links": forward,
        "kenlm": str(sample / "lm.5gram.arpa.gz"),
        "kenlm-reversed": str(reversed_lm),
        "lexical": str(lex),
        "ibm1": f"{sample / 'dev.de'},{sample / 'dev.en'}",
        "length": f"{sample / 'dev.de'},{sample / 'dev.en'}",
        "consensus": "bleu",
        "rest": str(sample / "moses.ini"),
        "scores": str(scores),
        "command": "awk -F '\t' '{print length($2)}'",
        "server": f"{sys.executable} {server}",
        "hf": str(transformer),
    }


@pytest.mark.parametrize(("kind", "row"), HERE.items(), ids=HERE)
def test_feature_contract(
    kind: str, row: object, sample: Path, models: dict[str, Path], tmp_path: Path, transformer: Path
) -> None:
    """A feature gives one finite row per candidate, independent of batches and of the order of candidates.

    The exception is `scores`, because a score file has the order of the list.
    """
    feature = load(kind, arguments(sample, models, tmp_path, transformer).get(kind, ""))
    values, signature = values_of(feature), feature.signatures["X"]
    assert values.shape[0] == 4
    assert np.isfinite(values).all()
    assert signature.partition("|")[0] == kind.removeprefix("kenlm-")
    apart = np.concatenate([values_of(feature, [sentence]) for sentence in SENTENCES])
    if kind == "scores":
        assert apart.tolist() == values.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
        return
    np.testing.assert_allclose(apart, values, atol=1e-5)
    turned = [Sentence(s.sentence, s.source, s.hypotheses[::-1], s.lines[::-1]) for s in SENTENCES]
    np.testing.assert_allclose(values_of(feature, turned)[[2, 1, 0, 3]], values, atol=1e-5)


@pytest.mark.parametrize("kind", HERE)
def test_no_feature_is_constant_on_the_sample(
    kind: str, sample: Path, models: dict[str, Path], tmp_path: Path, transformer: Path
) -> None:
    """Each value differs between candidates of a sentence.

    Exceptions are numbers and unknown words, because the sample has none.
    """
    sources = read_lines(str(sample / "dev.de"))
    given = []
    for each in itertools.islice(read_nbest(str(sample / "dev.nbest.gz")), 20):
        texts = tuple(tuple(tokens(line.text)) for line in each.hypotheses)
        given.append(Sentence(each.sentence, tuple(tokens(sources[each.sentence])), texts, each.hypotheses))
    named = arguments(sample, models, tmp_path, transformer)
    count = sum(len(each.hypotheses) for each in given)
    Path(named["scores"]).write_text("".join(f"{place % 7}\n" for place in range(count)))
    if kind == "neural":
        named["neural"] += f"[{','.join(name for name in VALUES if name != 'fertility')}]"
    values = values_of(load(kind, named.get(kind, "")), given)
    ends = np.cumsum([len(each.hypotheses) for each in given])[:-1]
    apart = np.any([part.std(axis=0) > 1e-9 for part in np.split(values, ends)], axis=0)
    wanted = {"numbers": [False], "kenlm": [True, False]}
    assert apart.tolist() == wanted.get(kind, [True] * len(apart))
