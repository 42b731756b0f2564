"""Values of pretrained models equal those of the library, which scores one candidate at a time."""

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from features.feature import Resources, Sentence
from moses_io.files.errors import InputError

transformers = pytest.importorskip("transformers")

from features.models.pretrained import prefixes, reader  # noqa: E402  it needs transformers
from features.models.pretrained.reader import Pretrained  # noqa: E402

Make = Callable[..., Path]
Warned = Callable[[str], AbstractContextManager[None]]

SENTENCES = [
    Sentence(
        0, ("die", "Zeitung"), (("the", "newspaper"), ("the",), ("the", "newspaper", "the"), ("the", "newspaper"))
    ),
    Sentence(1, ("die",) * 5, (("newspaper",), ("the", "the", "the"), ("the", "the", "newspaper", "the"))),
    Sentence(2, ("Zeitung",) * 3, (("the", "Zeitung"),)),
    Sentence(3, ("Zeitung", "die", "die"), ((), ("die",), ("die", "the"))),
]
LANGUAGES = {"nllb": "deu_Latn,eng_Latn,", "m2m100": "de,en,", "mbart": "de_DE,en_XX,", "mbart50": "de_DE,en_XX,"}
LANGUAGES |= {"marian": "eng,deu,", "t5": "de,en,"}
STYLES = ["marian", "opus", "m2m100", "nllb", "mbart", "mbart50", "t5"]


def opened(folder: Path, more: str = "text=tokens", **settings: Any) -> Pretrained:
    """Open a model with the languages of its style."""
    return Pretrained((f"{folder}[{LANGUAGES.get(folder.name, '')}{more}]",), Resources("cpu", **settings))


def values(model: Pretrained, sentences: Sequence[Sentence] = SENTENCES) -> Any:
    return model.read(sentences, ["logprob"]).values["logprob"]


def by_the_library(folder: Path, double: bool) -> list[float]:
    """Score one candidate at a time by the loss of the library."""
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if folder.name in LANGUAGES and folder.name not in ("marian", "t5"):
        tokenizer.src_lang, tokenizer.tgt_lang = LANGUAGES[folder.name].split(",")[:2]
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    model = model.double() if double else model
    scores = []
    for each in SENTENCES:
        prefix = {"marian": ">>deu<< ", "t5": "die the "}.get(folder.name, "")
        source = tokenizer(prefix + " ".join(each.source), return_tensors="pt")
        for hypothesis in each.hypotheses:
            labels = tokenizer(text_target=" ".join(hypothesis), return_tensors="pt")["input_ids"]
            more = {}
            if folder.name == "fsmt":  # its default decoder inputs are those of the encoder
                more = {"decoder_input_ids": torch.cat([torch.tensor([[2]]), labels[:, :-1]], dim=1)}
            with torch.no_grad():
                loss = model(**source, **more, labels=labels).loss
            scores.append(-float(loss) * labels.shape[1])
    return scores


@pytest.mark.parametrize("style", STYLES)
def test_values_equal_those_of_the_library(make: Make, style: str) -> None:
    folder = make(style)
    model = opened(folder)
    np.testing.assert_allclose(values(model), by_the_library(folder, double=False), rtol=0, atol=1e-4)
    model.network._model.double()  # type: ignore[attr-defined]
    np.testing.assert_allclose(values(model), by_the_library(folder, double=True), rtol=0, atol=1e-8)


def test_a_network_that_cannot_continue_prefixes_gives_a_warning(make: Make, warned: Warned) -> None:
    """FSMT of transformers reads only the last token, so its candidates are scored without a prefix cache."""
    folder = make("fsmt")
    with warned(f"{folder}: this network cannot continue prefixes, so each candidate is scored separately"):
        model = opened(folder)
    np.testing.assert_allclose(values(model), by_the_library(folder, double=False), rtol=0, atol=1e-4)


@pytest.mark.parametrize("style", ["marian", "m2m100", "mbart", "t5"])
def test_prefixes_are_shared(make: Make, style: str) -> None:
    steps = opened(make(style)).read(SENTENCES, ["logprob"]).steps
    ends = 2 if style in ("m2m100", "mbart") else 1  # the language is a second token
    different = [text for each in SENTENCES for text in set(each.hypotheses)]
    assert 0 < steps.computed < steps.separate == sum(len(text) + ends for text in different)


@pytest.mark.parametrize("style", ["opus", "t5", "llama"])
def test_values_do_not_depend_on_the_order_or_on_batches(
    make: Make, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(make(style))
    wanted = values(model)
    starts = np.cumsum([0, *(len(each.hypotheses) for each in SENTENCES)])
    turned = [Sentence(each.sentence, each.source, each.hypotheses[::-1]) for each in SENTENCES[::-1]]
    np.testing.assert_allclose(values(model, turned), wanted[::-1], atol=1e-4)
    for number, each in enumerate(SENTENCES):
        np.testing.assert_allclose(values(model, [each]), wanted[starts[number] : starts[number + 1]], atol=1e-4)
    for size in (1, model._row_bytes(12) * 2):
        monkeypatch.setitem(reader.MEMORY, "cpu", size)
        np.testing.assert_allclose(values(model), wanted, atol=1e-4)


@pytest.mark.usefixtures("progress")
def test_out_of_memory_halves_the_batch(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = opened(make("opus"))
    wanted, score = values(model), prefixes.score_prefixes

    def small(network: Any, sources: Any, candidates: Any, size: int) -> Any:
        if len(candidates) > 2:
            raise MemoryError
        return score(network, sources, candidates, size)

    monkeypatch.setattr(reader, "score_prefixes", small)
    np.testing.assert_allclose(values(model), wanted, atol=1e-5)
    assert "out of memory, 10 candidates are scored in two parts" in capsys.readouterr().err
    monkeypatch.setattr(reader, "score_prefixes", lambda *_: exec("raise MemoryError"))
    with pytest.raises(InputError, match="opus: out of memory for a single candidate of 2 subwords"):
        values(model)


def test_values_equal_those_of_single_candidates(make: Make) -> None:
    model = opened(make("mbart50"))
    alone = np.concatenate([model.score_separately(each, ["logprob"]).values["logprob"] for each in SENTENCES])
    np.testing.assert_allclose(values(model), alone, atol=1e-5)


def test_cached_values_are_not_computed_again(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = opened(make("opus"), cache=str(tmp_path / "cache"))
    first = values(model, SENTENCES[:2])
    encoded = []
    encode = model._encoding
    monkeypatch.setattr(model, "_encoding", lambda sentences: encoded.extend(sentences) or encode(sentences))
    assert values(model, SENTENCES[:2]).tolist() == first.tolist() and not encoded
    more = Sentence(0, SENTENCES[0].source, (*SENTENCES[0].hypotheses, ("Zeitung",)))
    assert values(model, [more])[:4].tolist() == first[:4].tolist()
    assert [each.hypotheses for each in encoded] == [(("Zeitung",),)]


def llama_by_hand(folder: Path, prompt: str, text: str) -> float:
    """Return log p of the tokens of a text after those of a prompt."""
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    start = tokenizer.convert_tokens_to_ids(prompt.split(" "))
    ids = [*start, *tokenizer.convert_tokens_to_ids(text.split(" "))]
    with torch.no_grad():
        rows = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(float(rows[place - 1, ids[place]]) for place in range(len(start), len(ids)))


@pytest.mark.parametrize(
    ("template", "prompt", "text"),
    [
        (None, "<s>", "▁the ▁newspaper </s>"),
        ("{source} die", "▁die ▁Zeitung", "▁die ▁the ▁newspaper </s>"),
        ("the {source} die {candidate}", "▁the ▁die ▁Zeitung", "▁die ▁the ▁newspaper </s>"),
        ("{source} die {candidate} Zeitung", "▁die ▁Zeitung", "▁die ▁the ▁newspaper ▁Zeitung"),
    ],
)
def test_a_causal_language_model(make: Make, tmp_path: Path, template: str | None, prompt: str, text: str) -> None:
    folder = make("llama")
    if template is not None:
        template = template if "{candidate}" in template else f"{template} "
        (tmp_path / "template").write_text(template + "\n")
    more = f"text=tokens,template={tmp_path / 'template'}" if template else "text=tokens"
    found = values(opened(folder, more), [*SENTENCES[1:], SENTENCES[0]])
    assert found[-4] == found[-1] == pytest.approx(llama_by_hand(folder, prompt, text), abs=1e-4)


def test_a_candidate_that_merges_with_the_prompt(make: Make, tmp_path: Path) -> None:
    """Values do not depend on which candidates are scored together."""
    folder = make("llama")
    (tmp_path / "template").write_text("{source} new{candidate}")  # "▁new" and "spaper" are "▁newspaper"
    model = opened(folder, f"text=tokens,template={tmp_path / 'template'}", cache=str(tmp_path / "cache"))
    texts = (("spaper",), ("the",), ("s", "the"))
    together = values(model, [Sentence(0, ("die",), texts)])
    for text, value in zip(texts, together, strict=True):
        alone = model.score_separately(Sentence(0, ("die",), (text,)), ["logprob"]).values["logprob"]
        assert alone[0] == pytest.approx(value, abs=1e-4)
    more = values(model, [Sentence(0, ("die",), (*texts, ("spaper", "die")))])
    assert more[:3].tolist() == together.tolist()


def test_gpt2(tmp_path: Path) -> None:
    """GPT-2 has one token for BOS and EOS, and another name for the maximum number of positions."""
    tokens = {token: number for number, token in enumerate(["<|endoftext|>", *"abc"])}
    tokenizer = transformers.GPT2Tokenizer(tokens, [], bos_token="<|endoftext|>", add_bos_token=True)
    config = transformers.GPT2Config(
        vocab_size=4, n_positions=8, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0,
        initializer_range=0.5,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    for part in (tokenizer, model):
        part.save_pretrained(tmp_path / "gpt2")
    found = values(opened(tmp_path / "gpt2"), [Sentence(0, (), ((), ("a",)))])
    import torch

    with torch.no_grad():
        rows = model.eval()(input_ids=torch.tensor([[0, 1]])).logits[0].log_softmax(-1)
    assert found.tolist() == pytest.approx([float(rows[0, 0]), float(rows[0, 1] + rows[1, 0])], abs=1e-4)
    with pytest.raises(
        InputError, match=r"gpt2: sentence 0: 10 subwords, more than the model's maximum of 8: 'aaaaaaaa"
    ):
        values(opened(tmp_path / "gpt2"), [Sentence(0, (), (("aaaaaaaa",),))])


def test_a_network_that_attends_to_later_tokens_is_an_error(tmp_path: Path) -> None:
    config = transformers.RobertaConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        initializer_range=0.5,
    )  # fmt: skip
    transformers.RobertaForCausalLM(config).save_pretrained(tmp_path / "roberta")
    tokenizer = transformers.GPT2Tokenizer(
        {token: number for number, token in enumerate(["</s>", *"abc"])}, [], eos_token="</s>"
    )
    tokenizer.save_pretrained(tmp_path / "roberta")
    with pytest.raises(InputError, match="roberta: not a causal language model, as tokens depend on later ones"):
        opened(tmp_path / "roberta")


def test_natural_text_is_the_default(make: Make) -> None:
    folder = make("llama")
    natural = Pretrained((str(folder),), Resources("cpu"))
    with_capital = Sentence(0, ("x",), (("Zeitung",), ("zeitung",)))
    found = values(natural, [with_capital])
    assert found[0] == found[1] == pytest.approx(values(opened(folder), [with_capital])[0], abs=1e-5)


def test_bfloat16_gives_close_values_and_is_in_the_signature(make: Make) -> None:
    folder = make("marian")
    exact, lowered = opened(folder), opened(folder, precision="bf16")
    assert "precision:bf16" in lowered.signature and "precision" not in exact.signature
    np.testing.assert_allclose(values(lowered), values(exact), rtol=0.05)


@pytest.mark.usefixtures("progress")
@pytest.mark.parametrize("style", ["opus", "nllb"])
def test_texts_longer_than_the_maximum_are_cut(make: Make, style: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The maximum is 64 subwords, including `</s>` and the token of the language, if any."""
    model, longest = opened(make(style)), 63 if style == "opus" else 62
    assert model._encoding.longest == 64
    for source, text in ((("die",) * longest, ("the",)), (("die",), ("the",) * longest)):
        longer = tuple(each * 2 if len(each) > 1 else each for each in (source, text))
        fitting, cut = (values(model, [Sentence(0, first, (second,))]) for first, second in ((source, text), longer))
        assert fitting == pytest.approx(cut, abs=1e-5)
    output = capsys.readouterr().err
    assert "Token indices" not in output
    assert output.count("texts of more than 64 subwords, the model's maximum, are cut, such as 'die die") == 1


def test_a_tokenizer_with_more_tokens_than_the_model_is_an_error(make: Make) -> None:
    model = opened(make("opus", size=7))
    with pytest.raises(
        InputError, match=r"opus: sentence 2: the tokenizer has token 7, the model has 7 tokens only: 'Zeitung "
    ):
        values(model, [SENTENCES[2]])


def test_the_size_of_a_model_is_reported(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "moses_rerank")
    folder = make("t5")
    opened(folder)
    assert f"{folder}: 0.0 million parameters, 0.00 GB as float32" in caplog.text


def test_a_model_larger_than_the_memory_is_an_error(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("features.models.pretrained.folder.memory_of", lambda device: 1000)
    with pytest.raises(InputError, match=r"t5: 0.0 million parameters.*, more than the 0.0 GB of this machine"):
        opened(make("t5"))


def damaged(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def without_tokenizer(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name not in ("config.json", "model.safetensors"):
            path.unlink()


def changed(name: str, value: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (damaged, "not a model that transformers can read"),
        (without_tokenizer, "(no tokenizer|not a model that transformers can read)"),
        (changed("architectures", ["BertForMaskedLM"]), "expected a seq.* language model, found 'BertForMaskedLM'"),
        (changed("model_type", None), r"not a model that transformers can read .*config\.json without model_type"),
        (shutil.rmtree, "no such folder"),
    ],
)
def test_folders_without_a_usable_model_are_errors(make: Make, change: Callable[[Path], None], message: str) -> None:
    folder = make("opus")
    change(folder)
    with pytest.raises(InputError, match=f"^{folder}: {message}") as caught:
        opened(folder)
    assert "\n" not in str(caught.value)
