"""The kinds of features that can be named. A new one is a class and a row here."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A row of the table.

    Attributes:
        target: `module:callable`, a `Feature`, `ListFeature` or `ModelFeature` of `features.feature`.
        label: start of the name in a list when the user gives none.
        description: a line for `moses-rerank features`.
        argument: what stands behind the colon; empty for nothing.
        takes: what the argument names: `models` (folders of ours), a `folder`, `files`, or else `text`.
        optional: the argument may be left out.
        many: the argument names several, separated by commas.
        total: lines of the list must have Moses' total.
        marks: parts of a file's name that decide how the file is used.
    """

    target: str
    label: str
    description: str
    argument: str = ""
    takes: str = "text"
    optional: bool = False
    many: bool = False
    total: bool = False
    marks: tuple[str, ...] = ()

    def marks_of(self, path: str) -> tuple[str, ...]:
        """Return the marks in the name of a file; the folder that it is in does not count."""
        return tuple(mark for mark in self.marks if mark in os.path.basename(path))


FEATURES: dict[str, Kind] = {
    "neural": Kind("features.kinds.neural:Neural", "Neural",
        "log-probability of a model, </s> included", "DIR", "models"),
    "ensemble": Kind("features.kinds.neural:Ensemble", "Ensemble",
        "log-probability of the mean of several models", "DIR,DIR,…", "models", many=True),
    "agreement": Kind("features.kinds.agreement:Agreement", "Agreement",
        "trace of the attentions of a forward and a backward model; the same over the shorter length",
        "DIR,DIR", "models", many=True),
    "links": Kind("features.kinds.agreement:Links", "Links",
        "attention of a forward model on Moses' word alignment", "DIR", "models"),
    "kenlm": Kind("features.kinds.language_model:KenLM", "KenLM",
        "log-probability of an n-gram model; unknown words", "ARPA", "files"),
    "kenlm-reversed": Kind("features.kinds.language_model:Reversed", "KenLMReversed",
        "the same, of the words from right to left", "ARPA", "files"),
    "lexical": Kind("features.kinds.lexical:Lexical", "Lexical",
        "IBM model 1 by lex.f2e or lex.e2f of Moses", "FILE", "files", marks=("f2e", "e2f")),
    "ibm1": Kind("features.kinds.lexical:Estimated", "IBM",
        "IBM model 1 of a corpus, in both directions", "SOURCE,TARGET", "files", many=True),
    "phrases": Kind("features.kinds.moses:Phrases", "Phrases",
        "phrases, their mean length, unaligned words, monotone steps"),
    "length": Kind("features.kinds.surface:Length", "Length",
        "words; with a corpus log-density of the ratio", "SOURCE,TARGET", "files", optional=True, many=True),
    "copied": Kind("features.kinds.surface:Copied", "Copied", "words that stand in the source, too"),
    "repetition": Kind("features.kinds.surface:Repetition", "Repetition", "words, pairs and triples said once more"),
    "numbers": Kind("features.kinds.surface:Numbers", "Numbers", "numbers that source and candidate do not share"),
    "punctuation": Kind("features.kinds.surface:Punctuation", "Punctuation", "punctuation that they do not share"),
    "consensus": Kind("features.kinds.consensus:Consensus", "Consensus",
        "likeness to the list, weighted by Moses' total", "bleu|chrf[,SCALE]", total=True),
    "posteriors": Kind("features.kinds.consensus:Posteriors", "Posteriors",
        "posterior of the n-grams, a value for each order", "SCALE", optional=True, total=True),
    "rest": Kind("features.kinds.moses:Rest", "Rest",
        "what is in Moses' total and not printed", "MOSES.INI", "files", total=True),
    "scores": Kind("features.kinds.external:Scores", "Scores",
        "output of another tool, a line a candidate", "FILE", "files"),
    "command": Kind("features.kinds.external:Command", "Command",
        "numbers that a program prints for source, candidate", "COMMAND"),
    "hf": Kind("features.models.huggingface:HuggingFace", "HF",
        "log-probability of a model of transformers; DIR[LANG,LANG] for one of many languages", "DIR", "folder"),
}  # fmt: skip
