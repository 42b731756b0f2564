"""Translations by pretrained models, tokenized in the same form as a list."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from features.feature import Resources, Sentence
from features.models.decoding.search import Beam
from moses_io.files.errors import InputError

transformers = pytest.importorskip("transformers")

from features.models.pretrained import translator  # noqa: E402  it needs transformers
from features.models.pretrained.form import Form, Tokenizer, find_form, with_form  # noqa: E402
from features.models.pretrained.reader import Pretrained  # noqa: E402
from features.models.pretrained.translator import PretrainedTranslator  # noqa: E402

Make = Callable[..., Path]
Warned = Callable[[str], AbstractContextManager[None]]
Command = Callable[..., tuple[int, bytes, str]]
Write = Callable[[str, "str | bytes"], Path]

SOURCES = [("die", "Zeitung"), (), ("die",) * 5]


def opened(folder: Path, size: int = 4, best: int = 3, options: str = "") -> Any:
    argument = f"{folder}[{options}{',' if options else ''}form=keep+escaped]"
    return PretrainedTranslator(argument, Beam(size, best, True), Resources("cpu"))


@pytest.mark.parametrize(
    ("lines", "language", "form", "same"),
    [
        (["The man &apos;s dog .", "One @-@ two &amp; three ."], "en", Form("keep", True, True), 1),
        (["the man &apos;s dog .", "it sleeps , too ."], "en", Form("lower", True, False), 1),
        (["the man 's dog in Berlin .", "it sleeps ."], "en", Form("first", False, False), 1),
        (["l&apos; homme dort ."], "fr", Form("lower", True, False), 1),
        (["The dog .", "a. b , c.d -- x\u00a0y"], "en", Form("keep", True, False), 0.5),
    ],
)
def test_the_form_of_tokenized_text_is_detected(lines: list[str], language: str, form: Form, same: float) -> None:
    assert find_form(lines, language) == (form, same)


@pytest.mark.parametrize("lines", [[], ["", " "]])
def test_text_without_words_has_the_default_form(lines: list[str]) -> None:
    assert find_form(lines, "") == (Form(), 1)


def test_natural_text_is_tokenized() -> None:
    text = "The man's up-to-date | dog."
    assert " ".join(Tokenizer(Form(), "en")(text)) == "The man &apos;s up-to-date &#124; dog ."
    assert " ".join(Tokenizer(Form("lower", False, True), "en")(text)) == "the man 's up @-@ to @-@ date | dog ."
    assert Tokenizer(Form("first"), "")("Ein Hund") == ("ein", "Hund")
    assert Form("lower", True, True).text == "lower+escaped+hyphens"


@pytest.mark.parametrize(
    ("style", "options"), [("opus", ""), ("nllb", "de,en"), ("mbart", "de,en"), ("m2m100", "de,en"), ("t5", "de,en")]
)
def test_translations_have_the_values_of_the_feature(make: Make, style: str, options: str) -> None:
    folder = make(style)
    (first, empty, last) = opened(folder, options=options).translate(SOURCES)
    assert [each.tokens for each in empty] == [()]
    model = Pretrained((f"{folder}[{options}]" if options else str(folder),), Resources("cpu"))
    for source, found in ((SOURCES[0], first), (SOURCES[2], last)):
        assert 1 <= len(found) <= 3 and len({each.tokens for each in found}) == len(found)
        sentence = Sentence(0, source, tuple(each.tokens for each in found))
        wanted = model.read([sentence], ["logprob"]).values["logprob"]
        assert [each.log_prob for each in found] == pytest.approx(wanted.tolist(), abs=1e-4)
        values = [each.log_prob / (len(each.tokens) + 1) for each in found]
        assert [each.value for each in found] == pytest.approx(values) and values == sorted(values, reverse=True)


def test_greedy_search_equals_that_of_the_library(make: Make) -> None:
    folder = make("nllb")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, src_lang="deu_Latn", tgt_lang="eng_Latn")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    inputs = tokenizer("die Zeitung", return_tensors="pt")
    start = tokenizer.convert_tokens_to_ids("eng_Latn")
    rows = model.generate(**inputs, forced_bos_token_id=start, num_beams=1, max_new_tokens=18, max_length=None)
    text = tokenizer.batch_decode(rows, skip_special_tokens=True)[0].strip()
    (found,) = opened(folder, 1, 1, "de,en,text=tokens").translate([("die", "Zeitung")])
    assert found[0].tokens == Tokenizer(Form(), "en")(text)


@pytest.mark.usefixtures("progress")
def test_translations_do_not_depend_on_batches(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    model, done = opened(make("opus")), []
    wanted = [[each.tokens for each in found] for found in model.translate(SOURCES, done.append)]
    assert done == [3]
    monkeypatch.setitem(translator.ROWS, "cpu", 1)
    assert [[each.tokens for each in found] for found in model.translate(SOURCES)] == wanted
    generate = model._reader.generate

    def small(sources: Any, *others: int) -> Any:
        if len(sources) > 1:
            raise MemoryError
        return generate(sources, *others)

    monkeypatch.setitem(translator.ROWS, "cpu", 128)
    monkeypatch.setattr(model._reader, "generate", small)
    assert [[each.tokens for each in found] for found in model.translate(SOURCES)] == wanted


def test_the_signature_has_the_settings_of_the_search(make: Make) -> None:
    argument = f"{make('opus')}[form=keep+escaped]"
    reader = Pretrained((argument,), Resources("cpu"))
    for normalize, expected in ((False, "|beam:4"), (True, "|beam:4|normalize:yes")):
        model = PretrainedTranslator(argument, Beam(4, 1, normalize), Resources("cpu"))
        assert model.signature == f"{reader.signature}{expected}|form:keep+escaped"


def test_the_form_of_a_text_is_added_to_the_options(make: Make, write: Write, warned: Warned) -> None:
    model, text = f"hf:{make('opus')}", str(write("text", "the dog , too .\n\n"))
    assert with_form(model, text) == f"{model}[form=lower+escaped]"
    assert with_form(f"{model}[de,en]", text) == f"{model}[de,en,form=lower+escaped]"
    assert with_form(f"{model}[form=keep]", text) == f"{model}[form=keep]"
    french = str(write("french", "l&apos; homme dort .\n"))
    assert with_form(f"{model}[en,fr]", french) == f"{model}[en,fr,form=lower+escaped]"
    other = write("other", "x , y.z ( a ) --- b c\u00a0\n")
    with warned(f"{other}: 100% of the lines are tokenized otherwise than translations of .*/opus"):
        with_form(model, str(other))
    with pytest.raises(InputError, match="empty"):
        with_form(model, str(write("empty", "\n")))


@pytest.mark.parametrize(
    ("options", "message"),
    [("", "option 'form' is missing"), ("[form=upper]", r"option form 'upper': expected keep\|lower\|first, then opt")],
)
def test_a_missing_or_wrong_form_is_an_error(make: Make, options: str, message: str) -> None:
    with pytest.raises(InputError, match=f"opus: {message}"):
        PretrainedTranslator(f"{make('opus')}{options}", Beam(1, 1, True), Resources("cpu"))


def test_a_causal_model_cannot_translate(make: Make) -> None:
    folder = make("llama")
    with pytest.raises(InputError, match=f"{folder}: a causal language model, which does not translate"):
        opened(folder)


def test_the_command_translate(make: Make, command: Command, write: Write) -> None:
    """The values in its list equal those of `score`."""
    folder, source = make("marian"), write("source", "die Zeitung\n\ndie die\n")
    like, nbest = write("like", "the newspaper\n"), write("list", "")
    start = ["translate", f"hf:{folder}[en,de]", "--source", source, "--beam", 4]
    status, _, err = command(*start, "--like", like, "--nbest", 2, "--output", nbest)
    assert status == 0 and "translations are tokenized as lower+escaped, which 100% of" in err
    status, out, err = command("score", nbest, "--source", source, "--feature", f"A=hf:{folder}[en,de]")
    assert status == 0, err
    for line in out.decode().splitlines():
        values = dict(zip(*[iter(line.split(" ||| ")[2].split())] * 2, strict=True))
        assert float(values["NMT="]) == pytest.approx(float(values["A="]), abs=1e-4)
    assert {line.split(b" ||| ")[0] for line in out.splitlines()} == {b"0", b"1", b"2"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "option 'form' is missing, the form of the translations"),
        (["--like", "LIKE", "--backward"], "a pretrained model cannot be combined with --backward"),
        (["--like", "LIKE", "models/other"], "a pretrained model cannot be combined with other models"),
        (["--like", "none"], "none: No such file or directory"),
    ],
)
def test_wrong_options_of_the_command_are_errors(
    make: Make, command: Command, write: Write, more: list[str], message: str
) -> None:
    source, like = write("source", "die Zeitung\n"), write("like", "the\n")
    options = [str(like) if each == "LIKE" else each for each in more]
    models = [f"hf:{make('opus')}", *([options.pop()] if options[-1:] == ["models/other"] else [])]
    status, _, err = command("translate", *models, *options, "--source", source)
    assert status == 2 and message in err
