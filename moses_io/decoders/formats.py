"""Formats of the n-best lists of other decoders.

| format | a candidate | score |
|---|---|---|
| `marian` | `0 ||| text ||| F0= -1.3 ||| -0.4`, with alignment or word scores before the features | as printed |
| `joshua`, `cdec` | `0 ||| text ||| lm_0=-12.3 WordPenalty=-1.3 ||| -8.7` | as printed |
| `travatar` | `0 ||| text ||| -8.7 ||| lm=-12.3 w=4` | as printed |
| `fairseq` | `H-0<TAB>-0.42<TAB>text`, then `P-0<TAB>-0.6 -0.2` | times ln 2, with the sum of `P` as `LogProb` |
| `sockeye` | JSON with `translations` and `scores`, a line for each sentence | negated, as it is a cost |
| `opennmt-py` | `text<TAB>-0.41`, without a sentence id | as printed |
| `ctranslate2`, `opennmt-tf` | `-0.41 ||| text`, without a sentence id | as printed |
| `ctranslate2-json` | JSON with `hypotheses` and `scores`, a line for each sentence | as printed |

Scores are natural logarithms or weighted sums of the decoder's features. Higher is better.
"""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from moses_io.files.errors import QUOTED, Fault, InputError, counted, shown
from moses_io.files.streams import name_of, numbered_lines
from moses_io.files.text import MAX_VALUE, decode, no_number, number, tokens, whole, without_line_end, without_tabs

_FAIRSEQ_CANDIDATE = re.compile(r"([HP])-([0-9]{1,18})\t(.*)")
_FAIRSEQ_LINE = re.compile(r"[STHDP]-[0-9]+\t")
_ALIGNMENT = re.compile(r"[-0-9.,; ]*")
"""Field with a word alignment, hard or soft. Its numbers count subwords and `</s>`, so it is not converted."""


RECOGNIZED_LINES = 100
"""First lines of a file from which its format is recognized."""


class Candidate(NamedTuple):
    """A candidate as another decoder printed it.

    Attributes:
        sentence: id of the source sentence, from 0.
        text: the translation.
        score: the decoder's own score, higher is better.
        features: values of other features by name.
    """

    sentence: int
    text: str
    score: str
    features: dict[str, str]


def recognize(path: str) -> str:
    """Return the format of a file by its first lines, or "" if it is not one of `FORMATS`."""
    first = [decode(without_line_end(line)) for _, line in itertools.islice(numbered_lines(path), RECOGNIZED_LINES)]
    return format_of([line for line in first if line.strip(" \t")])


def format_of(lines: Sequence[str]) -> str:
    """Return the format of a list with these first lines, none of which is blank, or "" if it is unknown."""
    if any(map(_FAIRSEQ_LINE.match, lines)):
        return FAIRSEQ
    if lines and all(line.startswith("{") for line in lines):
        row = _json(lines[0])
        keys = row if isinstance(row, dict) else {}
        sockeye = isinstance(keys.get("translation"), str)
        return "ctranslate2-json" if "hypotheses" in keys else "sockeye" if sockeye else ""
    if lines and all("|||" in line for line in lines):
        found = Counter(filter(None, map(_format_with_bars, lines)))
        if found:
            return found.most_common(1)[0][0]
    if lines and all("\t" in line and number(line.rpartition("\t")[2]) is not None for line in lines):
        # A vocabulary with scores has one token on each line.
        return "opennmt-py" if any(" " in line for line in lines) else ""
    return ""


def _format_with_bars(line: str) -> str:
    fields = [field.strip(" ") for field in line.split("|||")]
    if whole(fields[0]) is None:
        return "ctranslate2" if number(fields[0]) is not None else ""
    if len(fields) < 4 or number(fields[-1]) is None:
        return "travatar" if len(fields) == 4 and number(fields[2]) is not None and "=" in fields[3] else ""
    if fields[-2].startswith(("F0= ", "F0=-")) or any(field.startswith("WordScores=") for field in fields):
        return "marian"
    features = [token.rpartition("=") for token in tokens(fields[2].replace(";", " "))]
    labelled = bool(features) and all(name and number(value) is not None for name, _, value in features)
    return "cdec" if labelled and number(fields[3]) is not None else ""


def read_candidates(path: str, format_name: str, sources: Sequence[str] | None) -> Iterator[Candidate]:
    """Yield each candidate.

    Args:
        path: the list.
        format_name: its format, one of `FORMATS`.
        sources: source sentences, needed by the formats in `UNNUMBERED`.

    Raises:
        InputError: a line does not have the format.
    """
    parse, numbered = FORMATS[format_name], format_name not in UNNUMBERED
    numbering: Iterator[int] = itertools.count() if numbered else _numbering(path, format_name, sources)
    unsorted: list[Candidate] = []
    for line_number, line in numbered_lines(path):
        text = decode(without_line_end(line))
        if numbered and not text.strip(" \t"):
            continue
        try:
            if format_name == FAIRSEQ:
                _add_fairseq(text, unsorted)
            else:
                yield from map(_checked, parse(text, next(numbering)))
        except Fault as fault:
            raise InputError(f"{name_of(path)}:{line_number}: {fault}") from None
    yield from sorted(unsorted, key=lambda each: each.sentence)  # as fairseq prints them in the order of lengths


def _checked(candidate: Candidate) -> Candidate:
    """Return a candidate that a list of Moses can have. Raises `Fault` if a value is not a finite number."""
    for value in (candidate.score, *candidate.features.values()):
        if number(value) is None:
            raise Fault(no_number(value))
    if "|||" in candidate.text:
        raise Fault(f"'|||' in the text, which Moses' format cannot have: {shown(candidate.text)}")
    return candidate._replace(text=without_tabs(candidate.text).strip(" "))


def _numbering(path: str, format_name: str, sources: Sequence[str] | None) -> Iterator[int]:
    """Return the sentence of each line of a list without ids, in which all sentences have equally many lines.

    Blank source sentences have blank translations. Some versions of OpenNMT-py write no lines for empty sources.
    """
    if sources is None:
        raise InputError(f"{path}: this format has no sentence ids, so the source text is needed (--source)")
    blank = [_is_blank(format_name, decode(without_line_end(line))) for _, line in numbered_lines(path)]
    filled = [index for index, line in enumerate(sources) if line.strip(" \t")]
    if sources and blank and len(blank) % len(sources) == 0:
        size = len(blank) // len(sources)
        if all(all(blank[index * size : (index + 1) * size]) for index in {*range(len(sources))} - {*filled}):
            return (index for index in range(len(sources)) for _ in range(size))
    if format_name == "opennmt-py" and filled and blank and len(blank) % len(filled) == 0:
        return (index for index in filled for _ in range(len(blank) // len(filled)))
    lines = f"{counted(len(blank), 'line')} for {counted(len(sources), 'source sentence')}"
    expected = "expected the same number for each sentence, with empty translations for empty source sentences"
    raise InputError(f"{path}: {lines}, {expected}")


def _is_blank(format_name: str, line: str) -> bool:
    """Return whether a line without an id has an empty translation."""
    try:
        return not any(each.text.strip(" \t") for each in FORMATS[format_name](line, 0))
    except Fault:  # reported with its line when the list is read
        return False


def _identifier(field: str) -> int:
    identifier = whole(field)
    if identifier is None:
        raise Fault(f"expected a sentence id, found {shown(field)}")
    return identifier


def _fields(line: str, least: int, most: int) -> list[str]:
    """Split a line at `|||`. Raises `Fault` if the number of fields is wrong."""
    fields = [field.strip(" ") for field in line.split("|||")]
    if not least <= len(fields) <= most:
        expected = str(least) if least == most else f"{least} to {most}"
        raise Fault(f"expected {expected} fields between '|||', found {len(fields)}")
    return fields


def _features(text: str) -> dict[str, str]:
    """Parse `name= value …` and `name=value`, separated by spaces or semicolons. Raises `Fault` if it is neither."""
    features: dict[str, str] = {}
    name, count = "", 0
    for token in tokens(text.replace(";", " ")):
        head, equals, value = token.rpartition("=")
        if equals:
            name, count = head, 0
        if not name:
            raise Fault(f"expected features such as 'name=value', found {shown(token)}")
        if equals and not value:
            continue
        label = f"{name}{count}" if count else name
        if label in features:
            raise Fault(f"feature {shown(label)} occurs twice")
        features[label] = value if equals else token
        count += 1
    return features


def _marian(line: str, _: int) -> list[Candidate]:
    """Parse `id ||| text [||| alignment] [||| WordScores= …] ||| features ||| score`."""
    fields = _fields(line, 4, 7)
    optional, score = fields[2:-2], fields[-1]
    _check_alignment([field for field in optional if not field.startswith("Word")])
    values = _features(fields[-2].partition("WordScores=")[0])
    return [Candidate(_identifier(fields[0]), fields[1], score, values)]


def _named(line: str, _: int) -> list[Candidate]:
    """Parse `id ||| text ||| features ||| score`. With references, cdec adds a BLEU score."""
    identifier, text, features, score, *_bleu = _fields(line, 4, 5)
    return [Candidate(_identifier(identifier), text, score, _features(features))]


def _travatar(line: str, _: int) -> list[Candidate]:
    """Parse `id ||| text ||| score ||| features`. Of several factors, the first is the text."""
    identifier, text, score, features = _fields(line, 4, 4)
    return [Candidate(_identifier(identifier), text.partition(" |COL| ")[0], score, _features(features))]


def _scored(line: str, sentence: int) -> list[Candidate]:
    """Parse `score ||| text [||| alignment]`."""
    score, text, *optional = _fields(line, 2, 4)
    _check_alignment(optional)
    return [Candidate(sentence, text, score, {})]


def _tabbed(line: str, sentence: int) -> list[Candidate]:
    """Parse `text [||| alignment] TAB score`."""
    text, tab, score = line.rpartition("\t")
    if not tab:
        raise Fault("expected a text, a tab and a score. Translate with -with_score")
    before, bars, last = text.rpartition("|||")
    return [Candidate(sentence, before if bars and _ALIGNMENT.fullmatch(last) else text, score, {})]


def _check_alignment(fields: Sequence[str]) -> None:
    """Raise `Fault` if one of the fields is no alignment, and therefore text."""
    for field in fields:
        if not _ALIGNMENT.fullmatch(field):
            raise Fault(f"expected an alignment, found {shown(field)}")


def _add_fairseq(line: str, candidates: list[Candidate]) -> None:
    """Add the candidate of a line `H`, or the log-probability of a line `P` to the last candidate."""
    match = _FAIRSEQ_CANDIDATE.fullmatch(line)
    if not match:
        return
    kind, sentence, rest = match[1], int(match[2]), match[3]
    if kind == "H":
        score, tab, text = rest.partition("\t")
        if not tab:
            raise Fault("expected H-ID, a score and a text, separated by tabs")
        candidates.append(_checked(Candidate(sentence, text, _times_ln2([score]), {})))
    elif not candidates or candidates[-1].sentence != sentence or candidates[-1].features:
        raise Fault(f"P-{sentence} without H-{sentence} before it")
    else:
        candidates[-1] = candidates[-1]._replace(features={"LogProb": _times_ln2(tokens(rest))})


def _times_ln2(texts: Sequence[str]) -> str:
    """Return the sum of logarithms to base 2 as a natural logarithm."""
    return f"{sum(map(_finite, texts)) * math.log(2):.10g}"


def _finite(text: str) -> float:
    value = number(text)
    if value is None:
        raise Fault(no_number(text))
    return value


def _sockeye(line: str, sentence: int) -> list[Candidate]:
    """Parse the JSON of a sentence.

    Each score is a cost or, since version 3, a list of the cost and the costs of target factors. A source without
    tokens has the score -Infinity and an empty translation.
    """
    row = _object(line)
    texts = row.get("translations", [row.get("translation")])
    scores = row.get("scores", [row.get("score")])
    if texts == [""] and scores == [-math.inf]:
        scores = [0.0]
    costs = [score[0] if isinstance(score, list) and score else score for score in _listed(scores)]
    return _paired(sentence, texts, [0 - _number(cost) for cost in costs])


def _ctranslate2(line: str, sentence: int) -> list[Candidate]:
    """Parse a `TranslationResult` of CTranslate2 as JSON. A hypothesis is a text or a list of tokens."""
    row = _object(line)
    texts = [" ".join(map(str, each)) if isinstance(each, list) else each for each in _listed(row.get("hypotheses"))]
    return _paired(sentence, texts, row.get("scores"))


def _paired(sentence: int, texts: Any, scores: Any) -> list[Candidate]:
    """Return the candidates with these texts and scores. Raises `Fault` if they are not as many texts and numbers."""
    if len(_listed(texts)) != len(_listed(scores)):
        raise Fault(f"{counted(len(texts), 'translation')}, but {counted(len(scores), 'score')}")
    candidates = []
    for text, score in zip(texts, scores, strict=True):
        if not isinstance(text, str) or any("\ud800" <= character <= "\udfff" for character in text):
            raise Fault(f"expected a text, found {shown(ascii(text))}")
        candidates.append(Candidate(sentence, " ".join(text.split("\n")), repr(_number(score)), {}))
    return candidates


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_VALUE:
        raise Fault(f"expected a finite number, found {shown(str(value)[:QUOTED])}")
    return float(value)


def _object(line: str) -> dict[str, Any]:
    row = _json(line)
    if not isinstance(row, dict):
        raise Fault(f"expected a JSON object, found {shown(line)}")
    return row


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Fault(f"expected a list of translations or scores, found {shown(str(value))}")
    return value


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


FAIRSEQ = "fairseq"

UNNUMBERED = ("opennmt-py", "ctranslate2", "opennmt-tf")
"""Formats without sentence ids, in which every sentence has equally many lines."""

FORMATS: dict[str, Callable[[str, int], list[Candidate]]] = {
    "marian": _marian,
    "joshua": _named,
    "cdec": _named,
    "travatar": _travatar,
    FAIRSEQ: lambda line, sentence: [],  # has a parser of several lines
    "sockeye": _sockeye,
    "opennmt-py": _tabbed,
    "opennmt-tf": _scored,
    "ctranslate2": _scored,
    "ctranslate2-json": _ctranslate2,
}
"""Parser of a line by format, from the line and the sentence to which it belongs if it has no id."""
