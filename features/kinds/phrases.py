"""What Moses prints about how it translated: phrases and word alignment."""

import re
from collections.abc import Sequence

import numpy as np

from features.feature import Array, Candidates, Resources
from moses_io.errors import InputError
from moses_io.hypothesis import Hypothesis
from moses_io.text import decode, tokens, without_line_end

Links = frozenset[tuple[int, int]]

_SEGMENT = re.compile("([0-9]+)(?:-([0-9]+))?=([0-9]+)(?:-([0-9]+))?")
_LINK = re.compile("([0-9]+)-([0-9]+)")


class Phrases:
    """Five values: number of phrases, mean words of a phrase, unaligned source and target words, monotone steps.

    Phrases are those of the segmentation field or, where there is none, the connected groups of links. Steps are the
    share of phrases that begin right behind the source of the phrase before. Counts of what is unaligned are negative.

    Raises:
        InputError: the list has neither field.
    """

    def __init__(self, argument: str, resources: Resources) -> None:
        self.signature = "phrases"

    def __call__(self, sentences: Sequence[Candidates]) -> Array:
        """(N, 5)."""
        rows = [
            _row(len(each.source), hypothesis, line, each.sentence)
            for each in sentences
            for hypothesis, line in zip(each.hypotheses, each.lines, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 5)


def _row(source: int, hypothesis: Sequence[str], line: Hypothesis, sentence: int) -> list[float]:
    links, segments = word_alignment(line, source, len(hypothesis)), segmentation(line)
    if links is None and segments is None:
        hint = "decode with -print-alignment-info-in-n-best or -include-segmentation-in-n-best"
        raise InputError(f"feature 'phrases', sentence {sentence}: the list has no alignment; {hint}")
    spans = segments if segments is not None else _groups(links or frozenset())
    count = len(spans)
    steps = [after[0] == before[1] + 1 for before, after in zip([(0, -1, 0, 0), *spans], spans, strict=False)]
    unaligned = (0, 0)
    if links is not None:
        unaligned = source - len({i for i, _ in links}), len(hypothesis) - len({j for _, j in links})
    mean = len(hypothesis) / count if count else 0.0
    return [count, mean, -unaligned[0], -unaligned[1], sum(steps) / count if count else 1.0]


def segmentation(line: Hypothesis) -> list[tuple[int, int, int, int]] | None:
    """Return first and last source word, first and last target word of each phrase in target order, or None."""
    for field in line.fields[4:6]:
        parts = tokens(decode(without_line_end(field)))
        found = [_SEGMENT.fullmatch(part) for part in parts]
        if parts and all(found):
            spans = []
            for match in found:
                assert match is not None
                first, last, start, end = match.groups()
                spans.append((int(first), int(last or first), int(start), int(end or start)))
            return sorted(spans, key=lambda span: span[2])
    return None


def word_alignment(line: Hypothesis, source: int, target: int) -> Links | None:
    """Return links (source word, target word) from 0, or None where the list has none.

    Chart decoders count `<s>` and `</s>`: where a link is beyond the sentence, as that of `</s>` is, all are moved back
    by one and those of the marks are dropped.

    Raises:
        InputError: links that fit neither way.
    """
    for field in line.fields[4:6]:
        parts = tokens(decode(without_line_end(field)))
        found = [_LINK.fullmatch(part) for part in parts]
        if all(found) and (parts or field is not line.fields[4] or len(line.fields) == 5):
            links = {(int(match.group(1)), int(match.group(2))) for match in found if match}
            if any(i >= source or j >= target for i, j in links):
                links = {(i - 1, j - 1) for i, j in links}
                if any(not (-1 <= i <= source and -1 <= j <= target) for i, j in links):
                    raise InputError(f"sentence {line.sentence}: links beyond its {source} and {target} words")
                links = {(i, j) for i, j in links if 0 <= i < source and 0 <= j < target}
            return frozenset(links)
    return None


def _groups(links: Links) -> list[tuple[int, int, int, int]]:
    """Return the spans of groups of links that share words, in target order."""
    groups: list[set[tuple[int, int]]] = []
    for link in sorted(links):
        touching = [group for group in groups if any(link[0] == i or link[1] == j for i, j in group)]
        groups = [group for group in groups if group not in touching]
        groups.append({link}.union(*touching))
    spans = [
        (min(i for i, _ in group), max(i for i, _ in group), min(j for _, j in group), max(j for _, j in group))
        for group in groups
    ]
    return sorted(spans, key=lambda span: span[2])
