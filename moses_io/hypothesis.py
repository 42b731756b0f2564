"""One line of a Moses n-best list, which is written back byte for byte.

A line is `id ||| text ||| features ||| total ||| more…`, split at `|||` with or without spaces around it.

* A feature is `Name= v v`, or `name: v v` in lists from before 2013.
* A feature with `_` in its name and one value is sparse. Moses' tuning tools read every feature with `_` as sparse, and
  misread further values.
* Values before the first name are the features of an unlabelled list.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from moses_io.files.errors import Fault, shown
from moses_io.files.text import MAX_VALUE, NUMBER, decode, encode, no_number, number, numbers, tokens, without_line_end

MAX_VALUES = 1_000
"""Maximum values of a line that a regular expression reads. A larger expression takes long to compile."""

UNLABELLED = "Unlabelled"
"""Name of the feature that holds all values without a name."""

_BARS = b"|||"
_OLD_LABEL = re.compile("[A-Za-z]+:")
"""Name of a feature in lists from before 2013, such as `lm:`."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One line of an n-best list.

    Attributes:
        sentence: id of the source sentence, from 0.
        number: line number in the file, from 1.
        fields: the line split at `|||`, with all bytes kept. Joined by `|||` they give the line again.
        dense: (name, values) of each dense feature, in the order of the line.
        sparse: value of each sparse feature by its name.
    """

    sentence: int
    number: int
    fields: tuple[bytes, ...]
    dense: tuple[tuple[str, tuple[float, ...]], ...]
    sparse: dict[str, float]

    @property
    def text(self) -> str:
        """The translation without the spaces around it."""
        return decode(self.fields[1].strip(b" "))

    @property
    def total(self) -> float | None:
        """Total score in the fourth field, or None if the field is missing or not a number."""
        return number(decode(without_line_end(self.fields[3]).strip(b" "))) if len(self.fields) > 3 else None

    @property
    def line(self) -> bytes:
        """The line as it was read, with its line end."""
        return _BARS.join(self.fields)


def no_total(hypothesis: Hypothesis) -> str:
    """Return the message for a line whose total is missing or not a number."""
    text = decode(without_line_end(hypothesis.fields[3])).strip(" ") if len(hypothesis.fields) > 3 else ""
    return "no total in the fourth field" + (f", found {shown(text)}" if text else "")


def parse_line(line: bytes, number: int) -> Hypothesis:
    """Parse one line.

    Args:
        line: with or without its line end.
        number: line number, from 1.

    Raises:
        Fault: fewer than three fields, an id that is not a number, a repeated feature name, a name without values, or
            a value that is not a number.
    """
    fields = tuple(line.split(_BARS))
    if len(fields) < 3:
        raise Fault(f"expected at least 3 fields between '|||', found {len(fields)}")
    identifier = fields[0].strip(b" ")
    if not identifier.isdigit() or len(identifier) > 18:
        raise Fault(f"expected a sentence id, found {shown(decode(identifier))}")
    dense: list[tuple[str, tuple[float, ...]]] = []
    sparse: dict[str, float] = {}
    names: set[str] = set()
    for name, texts in _features(fields[2]):
        if name in names:
            raise Fault(f"feature {shown(name)} occurs twice")
        names.add(name)
        values = _unlabelled(texts) if name == UNLABELLED else numbers("feature", name, texts)
        if is_sparse(name, len(values)):
            sparse[name] = values[0]
        else:
            dense.append((name, values))
    return Hypothesis(int(identifier), number, fields, tuple(dense), sparse)


def _unlabelled(texts: Sequence[str]) -> tuple[float, ...]:
    """Return the values without a name. A token that is no number is probably a misspelled feature, or text."""
    values = []
    for token in texts:
        value = number(token)
        if value is None:
            fault = no_number(token, "features such as 'LM0= -2.5'")
            raise Fault(f"third field: {fault}")
        values.append(value)
    return tuple(values)


class LineParser:
    """Parser of the lines of a list, with the results of `parse_line`.

    Most lines of a list have the same labels, each with the same number of values. One regular expression, made from an
    earlier line, reads the features of such a line. `parse_line` parses all other lines.
    """

    def __init__(self) -> None:
        self._pattern: re.Pattern[bytes] | None = None
        self._features: tuple[tuple[str, slice], ...] = ()  # each name with the indices of its values

    def parse(self, line: bytes, number: int) -> Hypothesis:
        """Parse one line. Arguments and errors are those of `parse_line`."""
        fields = tuple(line.split(_BARS))
        match = self._pattern.fullmatch(fields[2]) if self._pattern and len(fields) > 2 else None
        if match:
            identifier, values = fields[0].strip(b" "), tuple(map(float, match.groups()))
            if (
                identifier.isdigit()
                and len(identifier) <= 18
                and min(values) >= -MAX_VALUE
                and max(values) <= MAX_VALUE
            ):
                dense = tuple((name, values[columns]) for name, columns in self._features)
                return Hypothesis(int(identifier), number, fields, dense, {})
        hypothesis = parse_line(line, number)
        layout = tuple((name, len(values)) for name, values in hypothesis.dense)
        if not hypothesis.sparse and 0 < sum(count for _, count in layout) <= MAX_VALUES:
            self._expect(layout)
        return hypothesis

    def _expect(self, layout: tuple[tuple[str, int], ...]) -> None:
        """Expect lines with these features and numbers of values."""
        self._pattern = _pattern(layout)
        ends = tuple(accumulate(count for _, count in layout))
        self._features = tuple((name, slice(end - count, end)) for (name, count), end in zip(layout, ends, strict=True))


@lru_cache(16)
def _pattern(layout: tuple[tuple[str, int], ...]) -> re.Pattern[bytes]:
    """Return the pattern of a field with these features and numbers of values. Its groups are the values."""
    value = rb" +(" + NUMBER.pattern.encode() + rb")"
    labels = [b" +" + re.escape(encode(name)) + b"=" for name, _ in layout]
    if layout[0][0] == UNLABELLED:
        labels[0] = b""
    texts = [label + value * count for label, (_, count) in zip(labels, layout, strict=True)]
    return re.compile(b"".join(texts) + rb" *\r?\n?")


def is_sparse(name: str, values: int) -> bool:
    """Return whether a feature is read as sparse: its name contains `_` and it has one value."""
    return "_" in name and values == 1


def feature_texts(hypothesis: Hypothesis) -> dict[str, str]:
    """Return the values of each feature, dense or sparse, as the text in the line, with one space between them."""
    return {name: " ".join(texts) for name, texts in _features(hypothesis.fields[2])}


def _features(field: bytes) -> list[tuple[str, list[str]]]:
    """Return (name, value tokens) of each feature."""
    features: list[tuple[str, list[str]]] = []
    labelled = True
    for token in tokens(decode(without_line_end(field))):
        if token[-1] == "=" or (token[-1] == ":" and _OLD_LABEL.fullmatch(token)):
            features.append((token[:-1], []))
            if token == "=":
                raise Fault("a '=' without a feature name before it")
            continue
        if not features:
            features.append((UNLABELLED, []))
            labelled = False
        # Without labels, a sparse feature has one value, and further values are dense again.
        after_sparse = not labelled and len(features) > 1 and features[-1][1] and "_" in features[-1][0]
        features[0 if after_sparse else -1][1].append(token)
    for name, texts in features:
        if not texts:
            raise Fault(f"feature {shown(name)} has no value")
    return features


def with_features(hypothesis: Hypothesis, features: Sequence[bytes]) -> bytes:
    """Return the line with features, each as `LABEL= VALUE …`, appended to its third field.

    All other bytes stay the same.
    """
    fields = list(hypothesis.fields)
    body = fields[2].rstrip(b" \r\n")
    fields[2] = b" ".join([body, *features]) + fields[2][len(body) :]
    return _BARS.join(fields)


def with_other_features(hypothesis: Hypothesis, features: Sequence[bytes]) -> Hypothesis:
    """Return the hypothesis with all its features replaced by `features`, each as `LABEL= VALUE …`.

    Raises:
        Fault: the new features cannot be parsed.
    """
    field = hypothesis.fields[2]
    end = field[len(field.rstrip(b" \r\n")) :]
    fields = (*hypothesis.fields[:2], b" " + b" ".join(features) + end, *hypothesis.fields[3:])
    return parse_line(_BARS.join(fields), hypothesis.number)


def with_total(hypothesis: Hypothesis, total: str) -> bytes:
    """Return the line with its total score replaced, or added if the line has only three fields."""
    fields = list(hypothesis.fields)
    end = fields[-1][len(without_line_end(fields[-1])) :]
    if len(fields) == 3:
        fields[2] = without_line_end(fields[2]).rstrip(b" ") + b" "
        return _BARS.join([*fields, b" " + total.encode() + end])
    body = without_line_end(fields[3])
    start = body[: len(body) - len(body.lstrip(b" "))]
    rest = fields[3][len(body.rstrip(b" ")) :]
    fields[3] = start + total.encode() + rest
    return _BARS.join(fields)
