"""The argument of feature `hf`, and templates."""

from pathlib import Path

import pytest

from features.models.pretrained.options import Options, Template, parse_options, read_template
from features.request import parse_requests
from moses_io.files.errors import InputError


def test_languages_and_options() -> None:
    argument = "a/b[de,text=tokens,en,template=x/y]"
    assert parse_options(argument) == ("a/b", Options(("de", "en"), text="tokens", template="x/y"))
    assert parse_options("a[b]/c") == ("a[b]/c", Options())


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("tokens=1", "unknown option 'tokens'. Known: text, language, template, truecaser, form"),
        ("templat=x", "unknown option 'templat'. Did you mean 'template'?"),
        ("text=tokens,text=natural", "option 'text' occurs twice"),
        ("template=", "option 'template' has no value"),
        ("text=deescape+detok", "option text: unknown filter 'detok'. Did you mean 'detokenize'?"),
        ("text=tokens,truecaser=x", "option 'truecaser' needs text=natural, found text=tokens"),
        ("language=xx-,de,en", "option language: 'xx-' is not a code of a language"),
        ("de", "expected hf:DIR[SOURCE,TARGET], found 1 language"),
    ],
)
def test_wrong_options_are_errors(texts: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_options(f"dir[{texts}]")
    assert str(caught.value) == f"dir: {message}"


def test_a_template_is_split_at_the_candidate(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("German: {source}\nEnglish: {candidate}\n\n")
    assert read_template(str(path)) == Template("German: {source}\nEnglish: ", "\n")
    path.write_text("Translate: {source}\n")
    assert read_template(str(path)) == Template("Translate: {source}", "")
    assert read_template(str(path)).before("a {source}") == "Translate: a {source}"


@pytest.mark.parametrize("text", ["", "{candidate}", "{source} {source}", "{candidate} {source}", "{source}" * 2])
def test_a_template_with_wrong_placeholders_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t"
    path.write_text(text)
    with pytest.raises(InputError, match=f"^{path}: expected {{source}} once, then optionally {{candidate}} once"):
        read_template(str(path))


def test_files_of_options_are_parts_of_a_request() -> None:
    """Paths of parts are relative to an experiment file. A reranker has copies, and changed parts are scored again."""
    (request,) = parse_requests(["H=hf:m[de,en,template=t,truecaser=c,text=natural]"])
    assert request.parts == request.files == ["m", "t", "c"]
    assert request.with_parts(["x/m", "y/t", "z"]).argument == "x/m[de,en,template=y/t,truecaser=z,text=natural]"
    assert request.values == "[de,en,template=,truecaser=,text=natural]"
    with pytest.raises(InputError, match="a comma in 'y,t'"):
        request.with_parts(["x,m", "y,t", "z"])
