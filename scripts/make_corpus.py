#!/usr/bin/env python3
"""Generate a small German-English parallel corpus from a hand-written grammar.

    python make_corpus.py OUT_DIR [--train 6000] [--dev 400] [--test 400] [--seed 1]

The script writes OUT_DIR/{train,dev,test}.{de,en}: one sentence per line, tokenized, truecased, UTF-8. No sentence of
dev or test occurs in train.

The sentences are simple, but have the phenomena that make phrase-based translation from German hard: verb-final
subordinate clauses, participles and infinitives at the end of the clause, separable prefixes, V2 inversion,
case-marked articles, productive compounds (one German word, two or three English ones) and nouns whose
translation depends on the context. Words are drawn from a Zipf-like distribution, so that the test set contains
rare and unseen words, as in a low-resource corpus.
"""

import argparse
import random
from pathlib import Path

from sample_grammar import Grammar, Phrase


def draw_distinct(grammar: Grammar, size: int, seen: set[str]) -> list[Phrase]:
    """Draw sentences whose German side is not in `seen`, and add the German sides to `seen`."""
    sentences: list[Phrase] = []
    while len(sentences) < size:
        sentence = grammar.sentence()
        if sentence.de not in seen:
            seen.add(sentence.de)
            sentences.append(sentence)
    return sentences


def write_lines(path: Path, lines: list[str]) -> None:
    """Write the lines as UTF-8, each ended by a newline character on every operating system."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def main() -> None:
    """Parse the command line and write the corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=int, default=6000)
    parser.add_argument("--dev", type=int, default=400)
    parser.add_argument("--test", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    grammar = Grammar(random.Random(args.seed))
    seen: set[str] = set()
    # train comes last, so that its size changes neither dev nor test
    sizes = {"test": args.test, "dev": args.dev, "train": args.train}
    splits = {split: draw_distinct(grammar, size, seen) for split, size in sizes.items()}
    args.out.mkdir(parents=True, exist_ok=True)
    for split, sentences in splits.items():
        write_lines(args.out / f"{split}.de", [sentence.de for sentence in sentences])
        write_lines(args.out / f"{split}.en", [sentence.en for sentence in sentences])


if __name__ == "__main__":
    main()
