"""Roles of files: dev set, test sets, training corpus, monolingual text, initial weights and n-gram models."""

import filecmp
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from moses_io.files.errors import InputError, counted
from moses_io.files.text import ParallelFiles
from rerank.experiment.corpus import MIN_MONOLINGUAL
from rerank.experiment.entries import MAX_NAME_BYTES, RESERVED_NAMES, UNNAMED, NbestFiles
from rerank.experiment.init.kinds import ARPA, COMPILED, LINKS, WEIGHT_LINES, WEIGHTS, FilesByKind
from rerank.experiment.init.matching import (
    COVERAGE_MARGIN,
    Languages,
    ListContent,
    Text,
    TextsByLanguage,
    alignment_fault,
    closest_pair,
    count_words,
    drop_dissimilar,
    is_translation,
    parallel_groups,
    read_unigrams,
    split_by_candidates,
    texts_of,
)
from rerank.linear.candidates import FeatureSpace
from rerank.linear.weights import load_weight_file, match_initial_weights

DEV = ("dev", "val", "valid", "validation", "tune", "tuning", "mert")
"""Parts of a file name that mark the list of dev."""

TEST = ("test", "eval", "heldout")
"""Parts of a file name that mark a list as not dev."""

NO_MARKERS = ("contest", "fastest", "greatest", "latest", "shortest")
"""Parts of a file name that end with a mark but have another meaning."""

NO_CORPUS = "no parallel corpus: expected two further texts with the same number of lines, in the languages of dev"

MAX_NAMED = 3
"""Maximum number of files that a message names."""

_ENDINGS = re.compile(r"(\.(gz|bz2|xz|txt|out|list|n?-?best[\w-]*(\.[0-9]+)?))+$")
"""Endings of the file name of a list, after the name of its set."""


@dataclass
class Roles:
    """Roles of files.

    Attributes:
        kinds: kind of each file, by its path.
        reasons: reasons why files are not used although their kind could be.
        uses: role of each file that is used.
        missing: messages about roles without a file or with several possible files. If it is empty, `dev`, `space`,
            `train` and `initial_weights` are set.
        dev: files of the list on which weights are tuned.
        space: dense features of the list of dev.
        input_filter: names of the filters that join the subwords of dev, or empty.
        tests: files of the test sets by name.
        train: training corpus.
        initial_weights: file of the weights with which Moses decoded.
        ngrams: n-gram models of the target language.
        monolingual: text of the target language that belongs to no list or corpus, or empty.
    """

    kinds: dict[str, str]
    reasons: dict[str, str] = field(default_factory=dict)
    uses: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    dev: NbestFiles | None = None
    space: FeatureSpace | None = None
    input_filter: str = ""
    tests: dict[str, NbestFiles] = field(default_factory=dict)
    train: ParallelFiles | None = None
    initial_weights: str = ""
    ngrams: list[str] = field(default_factory=list)
    monolingual: str = ""

    def use(self, path: str, use: str) -> None:
        """Record a role of a file. A file may have several roles, such as the source of two lists."""
        self.uses[path] = f"{self.uses[path]}, {use}" if path in self.uses else use

    def lines(self) -> list[str]:
        """Return one line per file for the log."""
        reasons = {path: f"; {reason}" for path, reason in self.reasons.items() if path not in self.uses}
        return [
            f"{path}: {self.uses.get(path, 'not used')} ({kind}{reasons.get(path, '')})"
            for path, kind in self.kinds.items()
        ]


def find_roles(files: FilesByKind) -> Roles:
    """Infer the role of each file from its content.

    File names distinguish dev from test sets, name the test sets, and exclude texts that are named like a set from the
    monolingual text.
    """
    sizes = {each.path: f", {counted(len(each.sentences), 'sentence')}" for each in files.lists}
    sizes |= {each.path: f", {counted(each.lines, 'line')}" for each in files.texts}
    roles = Roles({path: kind + sizes.get(path, "") for path, kind in files.kinds.items()})
    texts = {each.path: texts_of(each, files.texts) for each in files.lists}
    _leave_out_translations(files.lists, texts, roles)
    by_candidates = {
        each.path: drop_dissimilar(each, split_by_candidates(each, texts[each.path])) for each in files.lists
    }
    dev = _find_dev(files.lists, by_candidates, roles)
    if dev is not None:
        roles.space, roles.input_filter = dev.space, dev.input_filter
        roles.dev = _use_set("dev", dev.path, by_candidates[dev.path], roles)
        languages = Languages.of(by_candidates[dev.path])
        others = [each for each in files.lists if each is not dev]
        by_words = {each.path: drop_dissimilar(each, languages.split(texts[each.path])) for each in others}
        _find_tests(by_words, roles.dev, roles)
        _record_dissimilar({dev.path: by_candidates[dev.path], **by_words}, texts, roles)
        free = [text for text in files.texts if text.path not in {*roles.uses, *roles.reasons}]
        _find_corpus(free, languages, roles)
        _find_alignment(files.of(LINKS), roles)
        _find_monolingual(files.texts, languages, roles)
        _find_ngrams(files, languages, roles)
    elif not parallel_groups(files.texts):
        roles.missing.append(NO_CORPUS)
    _find_initial_weights(files.of(WEIGHTS), files.of(WEIGHT_LINES), dev, roles)
    return roles


def _leave_out_translations(lists: Sequence[ListContent], texts: dict[str, list[Text]], roles: Roles) -> None:
    """Remove from the texts of all lists each translation that was chosen from a list: it is no reference."""
    for content in lists:
        for text in texts[content.path]:
            if is_translation(content, text):
                roles.reasons[text.path] = f"translation chosen from {content.path}"
    for path, each in texts.items():
        texts[path] = [text for text in each if text.path not in roles.reasons]


def _record_dissimilar(lists: Mapping[str, TextsByLanguage], texts: Mapping[str, Sequence[Text]], roles: Roles) -> None:
    """Record why texts of a list are used neither as source nor as reference."""
    for path, split in lists.items():
        for text in texts[path]:
            if text not in (*split.sources, *split.references):
                roles.reasons[text.path] = f"shares too few words with the candidates of {path}"


def _find_dev(
    lists: Sequence[ListContent], by_candidates: Mapping[str, TextsByLanguage], roles: Roles
) -> ListContent | None:
    named = [each for each in lists if _has_marker(DEV, each.path)]
    complete = [each for each in lists if by_candidates[each.path].sources and by_candidates[each.path].references]
    possible = named or [each for each in complete if not _has_marker(TEST, each.path)]
    if not possible and complete:
        are = "is" if len(complete) == 1 else "are"
        tests = f"{_enumerated([each.path for each in complete])} {are} named like a test set"
        roles.missing.append(f"no dev list: {tests}. Put 'dev' into the name of the list to tune on")
        return None
    if not possible:
        roles.missing.append("no n-best list with its source and a reference")
        return None
    if len(possible) > 1:
        advice = "give only one of them" if named else "put 'dev' into the name of one"
        roles.missing.append(
            f"{_enumerated([each.path for each in possible])} could each be the list of dev ({advice})"
        )
        return None
    dev = possible[0]
    if fault := _fault_of_dev(by_candidates[dev.path]):
        roles.missing.append(f"{dev.path}: {fault}")
        return None
    return dev


def _find_tests(lists: Mapping[str, TextsByLanguage], dev: NbestFiles, roles: Roles) -> None:
    """Use each list with a source as a test set."""
    tests = []
    for path, split in lists.items():
        fault = _fault(split)
        if not fault and split.sources[0].path == dev.source:
            fault = "another list of dev"
        if fault:
            roles.reasons[path] = fault
        else:
            tests.append(path)
    for path in tests:
        name = UNNAMED if len(tests) == 1 else _name(path, roles.tests)
        roles.tests[name] = _use_set(name, path, lists[path], roles)


def _fault_of_dev(split: TextsByLanguage) -> str:
    """Return why a list with these texts cannot be the list of dev, or an empty string if it can."""
    if split.sources and split.references:
        return _fault(split)
    texts = _enumerated([text.path for text in (*split.sources, *split.references)])
    return f"expected its source and a reference, found {texts}"


def _fault(split: TextsByLanguage) -> str:
    """Return why a list with these texts cannot be used at all, or an empty string if it can."""
    if len(split.sources) > 1:
        return f"{_enumerated([text.path for text in split.sources])} could each be its source (give only one of them)"
    return "" if split.sources else "no source"


def _use_set(name: str, path: str, split: TextsByLanguage, roles: Roles) -> NbestFiles:
    """Record the roles of the files of a set, and return them."""
    source, references = split.sources[0].path, tuple(text.path for text in split.references)
    for each, use in ((path, "list"), (source, "source"), *((reference, "reference") for reference in references)):
        roles.use(each, f"{use} of {name}")
    return NbestFiles(source=source, reference=references, nbest=path)


def _find_corpus(texts: Sequence[Text], languages: Languages, roles: Roles) -> None:
    """Use the longest pair of texts whose coverage of dev is within `COVERAGE_MARGIN` of the best."""
    pairs = [(*pair, group) for group in parallel_groups(texts) if (pair := closest_pair(languages, group))]
    if not pairs:
        roles.missing.append(NO_CORPUS)
        return
    minimum = max(known for _, _, known, _ in pairs) - COVERAGE_MARGIN
    source, target = next((source, target) for source, target, known, _ in pairs if known >= minimum)
    for other, _, known, group in pairs:
        shorter = other is not source and known >= minimum
        reason = "shorter than the training corpus" if shorter else "covers fewer words of dev than the training corpus"
        roles.reasons |= {text.path: reason for text in group if text not in (source, target)}
    roles.train = ParallelFiles(source=source.path, target=target.path)
    roles.use(source.path, "source of the training corpus")
    roles.use(target.path, "target of the training corpus")


def _find_alignment(paths: Sequence[str], roles: Roles) -> None:
    """Use the first word alignment whose links fit the training corpus."""
    for path in paths:
        if roles.train is None:
            return
        if reason := alignment_fault(path, roles.train):
            roles.reasons[path] = reason
        else:
            roles.train = replace(roles.train, alignment=path)
            roles.use(path, "word alignment of the training corpus")


def _find_monolingual(texts: Sequence[Text], languages: Languages, roles: Roles) -> None:
    """Use the longest other text of the target language.

    Texts with the same number of lines as another text are not used, because they may be parallel. Nor are texts that
    could be references: those named like a set, and those that are much shorter than the corpus.
    """
    if roles.train is None:
        return
    lines = Counter(text.lines for text in texts)
    pairs = next(text.lines for text in texts if text.path == roles.train.source)
    found = [
        text
        for text in texts
        if text.path not in {*roles.uses, *roles.reasons}
        and text.lines >= MIN_MONOLINGUAL * pairs
        and not (_has_marker(DEV, text.path) or _has_marker(TEST, text.path))
        and languages.is_target(count_words(text.path))
    ]
    alone = [text for text in found if lines[text.lines] == 1]
    roles.reasons |= {text.path: "as many lines as another text" for text in found if text not in alone}
    longest = max(alone, key=lambda text: text.lines, default=None)
    if longest:
        roles.monolingual = longest.path
        roles.use(longest.path, "monolingual text")
        roles.reasons |= {text.path: "shorter than the monolingual text" for text in alone if text != longest}


def _find_ngrams(files: FilesByKind, languages: Languages, roles: Roles) -> None:
    """Use each distinct n-gram model, except readable ones of the source language."""
    for path in files.of(ARPA, COMPILED):
        if same := next((other for other in roles.ngrams if filecmp.cmp(path, other, shallow=False)), None):
            roles.reasons[path] = f"the same as {same}"
        elif files.kinds[path] == ARPA and languages.is_source(read_unigrams(path)):
            roles.reasons[path] = "of the source language"
        else:
            roles.ngrams.append(path)
            roles.use(path, "for a feature")


def _find_initial_weights(inis: Sequence[str], others: Sequence[str], dev: ListContent | None, roles: Roles) -> None:
    """Find the initial weights.

    They are the only ini file. If there are several, or only weight files without sections, they are the only file with
    a weight for each feature of dev.
    """
    weights = inis or others
    possible = list(weights)
    if (len(possible) > 1 or not inis) and dev is not None:
        possible = [path for path in weights if _has_all(path, dev)]
        reason = f"no weight for some features of {dev.path}"
        roles.reasons |= {path: reason for path in weights if path not in possible}
    if len(possible) == 1:
        roles.initial_weights = possible[0]
        roles.use(roles.initial_weights, "initial weights")
    elif not weights:
        roles.missing.append("no weights that Moses decoded with (moses.ini)")
    elif dev is not None:
        paths, every = _enumerated(possible or weights), f"a weight for every feature of {dev.path}"
        hint = "give only one of them" if possible or inis else "add the moses.ini that Moses decoded with"
        has = "each has" if possible else "none has" if len(weights) > 1 else "expected"
        roles.missing.append(f"{paths}: {has} {every} ({hint})")


def _has_all(path: str, dev: ListContent) -> bool:
    """Return whether a weight file has, for each dense feature of a list, one weight per value."""
    try:
        content = load_weight_file(path)
        weights = match_initial_weights(replace(content, unweighted=()), dev.space)
    except InputError:
        return False
    return all(len(weights.get(name, ())) == values for name, values in dev.space.dense)


def _has_marker(markers: Sequence[str], path: str) -> bool:
    """Return whether a part of a file name is in `markers`, or ends with its first entry as in `newsdev2016`."""
    parts = re.split("[^a-z]+", Path(path).name.lower())
    return any(part in markers or (part.endswith(markers[0]) and part not in NO_MARKERS) for part in parts)


def _name(path: str, taken: Collection[str]) -> str:
    """Return a name for a test set, derived from the file name of its list."""
    plain = re.sub(r"[^\w.-]", "-", _ENDINGS.sub("", Path(path).name)).lstrip(".-")
    name = plain.encode()[: MAX_NAME_BYTES // 2].decode(errors="ignore") or UNNAMED
    numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in numbered if each not in taken and each not in RESERVED_NAMES)


def _enumerated(paths: Sequence[str]) -> str:
    """Return paths as text for a message. Further paths are only counted."""
    more = [f"{len(paths) - MAX_NAMED} more"] if len(paths) > MAX_NAMED else []
    *first, last = [*paths[:MAX_NAMED], *more] or ["neither"]
    return f"{', '.join(first)} and {last}" if first else last
