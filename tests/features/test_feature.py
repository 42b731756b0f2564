import bz2
import gzip
import itertools
import lzma
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from features.arrays import Array
from features.feature import Resources, Sentence
from features.feature_set import FeatureSet
from features.kinds.language_model import check_header
from features.models.tables import VALUES
from features.request import FeatureRequest, group_by_models, parse_requests
from features.table import FEATURES
from moses_io.files.errors import InputError
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


def test_length_counts_tokens() -> None:
    assert values_of(load("length")).tolist() == [[6], [2], [0], [9]]


def test_kenlm_gives_natural_logarithms_and_counts_unknown_words(tmp_path: Path) -> None:
    arpa = tmp_path / "tiny.arpa"
    arpa.write_text(ARPA)
    values = values_of(load("kenlm", str(arpa)), [Sentence(0, (), (("a",), ("b",), (), ("a", "a\u00a0b")))])
    log10 = [-0.1 - 0.2, -0.5 - 2 - 1, -0.5 - 1, -0.1 - 0.25 - 2 - 1]
    np.testing.assert_allclose(values[:, 0], np.array(log10) * math.log(10), atol=1e-5)
    assert values[:, 1].tolist() == [0, 1, 0, 1]


def test_a_file_that_is_not_a_language_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no model\n")
    for missing in ("nowhere", "x" * 300):  # no file has a name of more than 255 bytes
        with pytest.raises(InputError, match=f"{missing}: no such language model"):
            load("kenlm", missing)
    for content, reason in (
        (ARPA.encode().replace(b"\\2-grams", b"\xff\xfe"), "'bytes that are not UTF-8'"),
        (ARPA.encode()[:-60], "'"),
        (b"mmap lm http://kheafield.com/code format version 5\n\0" + bytes(99), '"File looks like it should be loaded'),
    ):
        (tmp_path / "text").write_bytes(content)
        with pytest.raises(InputError, match=f"text: not a language model that KenLM can read: {reason}") as caught:
            load("kenlm", str(tmp_path / "text"))
        assert len(str(caught.value).replace(str(tmp_path), "")) < 150


COUNT = "expected 'ngram {}=N' with a number of n-grams{}, found '{}'"
HEADERS = [
    (b"no model\n", 1, r"expected \data\, found 'no model'"),
    (b"\n# comment\n\xff\xfe\n", 3, r"expected \data\, found '\udcff\udcfe'"),
    (b"", 1, "the file ends before its n-grams"),
    (b"\\data\\\nngram 1=4\n", 2, "the file ends before its n-grams"),
    (b"\\data\\\nngram 1=-5\nngram 2=2\n\n", 2, COUNT.format(1, ", at least 1", "ngram 1=-5")),
    (b"\\data\\\r\nngram 1=4\r\nngram 2=-2\r\n\r\n", 3, COUNT.format(2, "", "ngram 2=-2")),
    (b"\\data\\\nngram 1=0\nngram 2=2\n\n", 2, COUNT.format(1, ", at least 1", "ngram 1=0")),
    (b"\\data\\\nngram 1=4\nngram 2=x\n\n", 3, COUNT.format(2, "", "ngram 2=x")),
    (b"\\data\\\nngram 1=4\nngram 2=1e9\n\n", 3, COUNT.format(2, "", "ngram 2=1e9")),
    (b"\\data\\\nngram 2=2\nngram 1=4\n\n", 2, COUNT.format(1, ", at least 1", "ngram 2=2")),
    (b"\\data\\\nngram 1=4\nngram 3=2\n\n", 3, COUNT.format(2, "", "ngram 3=2")),
    (b"\\data\\\nngram 1=4\n\\1-grams:\n", 3, COUNT.format(2, "", "\\\\1-grams:")),
    (b"\\data\\\nngram 1=999\nngram 2=2\n\n", 2, "fit into the file, found 999 of order 1 in 30 bytes"),
    (b"\\data\\\nngram 1=2\nngram 2=%d\n\n" % 2**63, 3, f"found {2**63} of order 2 in 46 bytes"),
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize(("content", "line", "message"), HEADERS)
def test_wrong_headers_of_arpa_files_are_errors(
    content: bytes, line: int, message: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """The check comes before KenLM, which crashes on negative counts and allocates 10^20 bytes for the last header."""
    path = tmp_path / "lm.arpa"
    path.write_bytes(pack(content))
    with pytest.raises(InputError) as caught:
        load("kenlm", str(path))
    assert f"{path}:{line}: not a language model that KenLM can read: " in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize(
    "content",
    [
        ARPA,
        ARPA.replace("\n", "\r\n"),
        f"\n# comment\n{ARPA}",
        ARPA.replace("1=4", "  1=    4 "),
        ARPA.replace("2=2\n", "2=2\nngram 3=0\n").replace("\\end", "\\3-grams:\n\n\\end"),
    ],
)
def test_variants_of_the_arpa_format_are_read(content: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "lm.arpa").write_bytes(pack(content.encode()))
    values = values_of(load("kenlm", str(tmp_path / "lm.arpa")), [Sentence(0, (), (("a",),))])
    np.testing.assert_allclose(values[0], [-0.3 * math.log(10), 0], atol=1e-5)


def test_the_check_of_n_gram_counts_accepts_the_shortest_lines(tmp_path: Path) -> None:
    """The shortest line has four bytes: a one-digit probability, a tab, a character and the line end."""
    words = "".join(f"0\t{letter}\n" for letter in "abcdefghijklmnopqrstuvwxyz" * 40)
    (tmp_path / "lm.arpa").write_text(f"\\data\\\nngram 1={26 * 40}\n\n{words}")
    check_header(str(tmp_path / "lm.arpa"))


def test_a_missing_package_kenlm_is_an_error_of_feature_kenlm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(InputError, match=r"feature 'kenlm' needs the package kenlm, .*pip install kenlm-ex"):
        load("kenlm", "x")


def test_requests_are_parsed() -> None:
    (named,) = parse_requests(["L=lexical:a\nb.f2e"])
    assert (named.label, named.parts) == ("L", ["a\nb.f2e"])
    assert parse_requests(["NMT=neural:a/b:c", "length", "kenlm:x", "Length1=length", "length"]) == [
        FeatureRequest("NMT", "neural", "a/b:c"),
        FeatureRequest("Length0", "length", ""),
        FeatureRequest("KenLM0", "kenlm", "x"),
        FeatureRequest("Length1", "length", ""),
        FeatureRequest("Length2", "length", ""),
    ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["lenght"], "unknown feature 'lenght'. Did you mean 'length'?"),
        (["NMT_fwd=length"], "label 'NMT_fwd': expected a letter, then letters and digits"),
        (["1x=length"], "label '1x'"),
        (["=length"], "label ''"),
        (["A=length", "A=length"], "label 'A' is given to two features"),
        (["neural"], "feature 'neural': expected neural:DIR"),
        (["copied:3"], "feature 'copied:3': expected copied"),
        (["A=nowhere.module:Class"], "unknown feature 'nowhere.module:Class': no "),
        (["A=nowhere.module:Class"], "/nowhere/module.py, and no such module is installed. Known: neural, "),
        (["neurall:models"], "/neurall.py, and no such module is installed. Did you mean 'neural'?"),
        (["lexica:lex.f2e"], "/lexica.py, and no such module is installed. Did you mean 'lexical'?"),
        (["string:digits"], "unknown feature 'string:digits': "),
        (["time:Clock"], "unknown feature 'time:Clock': time has no class 'Clock' with __call__"),
        ([f"{'A' * 101}=length"], "expected a letter, then letters and digits, at most 100"),
        (["Rest=length"], "label 'Rest': Rest, Rest0 … are reserved for the feature rest"),
    ],
)
def test_wrong_requests_are_errors(texts: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_requests(texts)
    assert message in str(caught.value)


def test_requests_for_the_same_models_are_grouped() -> None:
    requests = ["A=neural:f", "L=length", "B=neural:b", "M=ensemble:f,b", "C=neural:g", "G=agreement:f,b", "K=links:f"]
    labels = [[request.label for request in group] for group in group_by_models(parse_requests(requests))]
    assert labels == [["A", "B", "G", "K"], ["L"], ["M"], ["C"]]


def test_importing_the_table_of_features_does_not_import_torch() -> None:
    code = "import sys, features.feature, features.table; assert not {'torch', 'kenlm'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
