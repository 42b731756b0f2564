"""The grammar of the sample corpus: it draws sentences in German, each with its English translation."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import sample_lexicon as lexicon
from sample_lexicon import Noun, Verb

Item = TypeVar("Item")

# article-ending of the adjective, for m, f, n and the plural
DEFINITE = {
    "nom": "der-e die-e das-e die-en",
    "acc": "den-en die-e das-e die-en",
    "dat": "dem-en der-en dem-en den-en",
}
INDEFINITE = {
    "nom": "ein-er eine-e ein-es -e",
    "acc": "einen-en eine-e ein-es -e",
    "dat": "einem-en einer-en einem-en -en",
}


class Pair(NamedTuple):
    """A piece of text in both languages, tokens set apart by spaces."""

    de: str
    en: str


class Phrase(NamedTuple):
    """A noun phrase in both languages, and its number."""

    de: str
    en: str
    plural: bool


NOTHING = Pair("", "")


@dataclass(frozen=True)
class Clause:
    """The parts of a clause, which its methods put in the order of each language."""

    verb: Verb
    tense: str
    subject: Phrase
    object: Pair
    place: Pair
    time: Pair
    negated: bool

    def affirmed(self) -> "Clause":
        """Return the clause without its negation."""
        return replace(self, negated=False)

    def german_main(self) -> str:
        """Return the clause with the subject first and the verb second."""
        return f"{self.subject.de} {self.german_predicate()}"

    def german_predicate(self) -> str:
        """Return the main clause after its subject."""
        finite, end = self._german_verb()
        return f"{finite} {self.german_middle()} {end}"

    def german_inverted(self) -> str:
        """Return the main clause from its verb on, for something else than the subject, the time say, to precede."""
        finite, end = self._german_verb()
        return f"{finite} {self.subject.de} {self._german_object()} {self.place.de} {end}"

    def german_subordinate(self) -> str:
        """Return the clause with its finite verb at the end."""
        finite, end = self._german_verb()
        last = f"{end} {finite}" if self.tense == "perfect" else end + finite
        return f"{self.subject.de} {self.german_middle()} {last}"

    def german_middle(self) -> str:
        """Return what stands between the finite verb and the end of the clause."""
        return f"{self.time.de} {self._german_object()} {self.place.de}"

    def _german_object(self) -> str:
        return f"{self.object.de} nicht" if self.negated else self.object.de

    def _german_verb(self) -> tuple[str, str]:
        """Return the finite verb, and the participle or prefix that a main clause ends with."""
        if self.tense == "perfect":
            return self.verb.auxiliary(self.subject.plural), self.verb.participle
        return self.verb.finite(self.subject.plural, past=self.tense == "past"), self.verb.prefix

    def english(self) -> str:
        """Return the clause in English, where the order is always the same."""
        return f"{self.subject.en} {self.english_predicate()}"

    def english_predicate(self) -> str:
        """Return the English clause after its subject."""
        plural, past = self.subject.plural, self.tense != "present"
        if self.negated:
            auxiliary = "did" if past else "do" if plural else "does"
            verb = f"{auxiliary} not {self.verb.en_base}"
        else:
            verb = self.verb.en_finite(plural, past)
        predicate = f"{verb} {self.object.en} {self.place.en}"
        often = self.time.en in lexicon.FREQUENCIES
        return f"{self.time.en} {predicate}" if often else f"{predicate} {self.time.en}"


class Grammar:
    """Draws sentences; what it draws, and in which order, is fixed by the state of `rng`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.compounds = list(lexicon.COMPOUNDS)
        rng.shuffle(self.compounds)

    def sentence(self) -> Pair:
        """Draw a sentence of any kind."""
        kinds = {
            self.statement: 6,
            self.modal_statement: 4,
            self.belief: 3,
            self.conjunction: 4,
            self.relative: 3,
            self.question: 2,
            self.passive: 2,
            self.purpose: 2,
            self.existence: 2,
        }
        draw = self.rng.choices(list(kinds), weights=list(kinds.values()))[0]
        de, en = draw()
        return Pair(" ".join(de.split()), " ".join(en.split()))

    def statement(self) -> Pair:
        """Draw a main clause, at times with the time in front: Heute liest die Frau ein Buch."""
        clause = self.clause()
        fronted = self.chance(0.5) and clause.time.de
        de = f"{clause.time.de} {clause.german_inverted()}" if fronted else clause.german_main()
        return Pair(f"{de} .", f"{clause.english()} .")

    def modal_statement(self) -> Pair:
        """Draw a main clause with a modal verb, the infinitive at its end: die Frau will ein Buch lesen."""
        clause = self.clause(tense="present")
        modal = self.rng.choice(lexicon.MODALS)
        subject, verb = clause.subject, clause.verb
        if subject.plural:
            finite, en_finite = modal.plural, modal.en_not_plural if clause.negated else modal.en_plural
        else:
            finite, en_finite = modal.singular, modal.en_not_singular if clause.negated else modal.en_singular
        return Pair(
            f"{subject.de} {finite} {clause.german_middle()} {verb.infinitive} .",
            f"{subject.en} {en_finite} {verb.en_base} {clause.object.en} {clause.place.en} {clause.time.en} .",
        )

    def belief(self) -> Pair:
        """Draw a clause that someone believes, knows or says: der Mann glaubt , dass die Frau ein Buch liest."""
        subject = self.person("nom", plural=False)
        verb = self.rng.choice(list(lexicon.BELIEFS))
        clause = self.clause(with_place=False)
        return Pair(
            f"{subject.de} {verb} , dass {clause.german_subordinate()} .",
            f"{subject.en} {lexicon.BELIEFS[verb]} that {clause.english()} .",
        )

    def conjunction(self) -> Pair:
        """Draw a main and a subordinate clause, in either order: weil der Mann lacht , liest die Frau ein Buch."""
        main = self.clause(with_time=False, with_place=False).affirmed()
        sub = self.clause(with_place=False).affirmed()
        de = self.rng.choice(list(lexicon.CONJUNCTIONS))
        en = lexicon.CONJUNCTIONS[de]
        if self.chance(0.4):
            return Pair(
                f"{de} {sub.german_subordinate()} , {main.german_inverted()} .",
                f"{en} {sub.english()} , {main.english()} .",
            )
        return Pair(
            f"{main.german_main()} , {de} {sub.german_subordinate()} .",
            f"{main.english()} {en} {sub.english()} .",
        )

    def relative(self) -> Pair:
        """Draw a main clause with a relative clause at its subject: die Frau , die lacht , liest ein Buch."""
        noun = self.zipf(lexicon.PEOPLE)
        head = self.noun_phrase(noun, "nom", definite=True, adjective=self.chance(0.2))
        pronoun, _ = article_and_ending("nom", noun.gender, definite=True, plural=head.plural)
        inner = self.clause(with_time=False, subject=Phrase(pronoun, "who", head.plural)).affirmed()
        outer = self.clause(with_time=False, with_place=False, subject=head).affirmed()
        return Pair(
            f"{head.de} , {inner.german_subordinate()} , {outer.german_predicate()} .",
            f"{head.en} {inner.english()} {outer.english_predicate()} .",
        )

    def question(self) -> Pair:
        """Draw a yes-no question about the past: hat die Frau ein Buch gelesen ?"""
        clause = self.clause(tense="perfect", with_time=False).affirmed()
        return Pair(
            f"{clause.german_inverted()} ?",
            f"did {clause.subject.en} {clause.verb.en_base} {clause.object.en} {clause.place.en} ?",
        )

    def passive(self) -> Pair:
        """Draw a clause in the passive: das Buch wurde von der Frau gelesen."""
        verb = self.zipf([verb for verb in lexicon.TRANSITIVE if verb.takes in {"t", "o", "r"}])
        subject = self.noun_phrase(self.thing(compound=0.25), "nom")
        agent = self.person("dat")
        if self.chance(0.5):
            auxiliary, be = ("wurden", "were") if subject.plural else ("wurde", "was")
        else:
            auxiliary, be = ("werden", "are") if subject.plural else ("wird", "is")
        return Pair(
            f"{subject.de} {auxiliary} von {agent.de} {verb.participle} .",
            f"{subject.en} {be} {verb.en_participle} by {agent.en} .",
        )

    def purpose(self) -> Pair:
        """Draw a clause with an infinitive of purpose: die Frau geht in den Garten , um ein Buch zu lesen."""
        clause = self.clause(tense="present", with_time=False, with_place=False)
        place = self.noun_phrase(self.zipf(lexicon.PLACES), "acc", definite=True, plural=False, adjective=False)
        subject, verb = clause.subject, clause.verb
        go, en_go = ("gehen", "go") if subject.plural else ("geht", "goes")
        to = "to" if self.chance(0.5) else "in order to"
        return Pair(
            f"{subject.de} {go} in {place.de} , um {clause.object.de} {verb.zu_infinitive} .",
            f"{subject.en} {en_go} to {place.en} {to} {verb.en_base} {clause.object.en} .",
        )

    def existence(self) -> Pair:
        """Draw what there is at a place: im Garten gibt es einen Tisch."""
        place = self.place()
        thing = self.noun_phrase(self.thing(compound=0.3), "acc", definite=False)
        be = "are" if thing.plural else "is"
        return Pair(f"{place.de} gibt es {thing.de} .", f"there {be} {thing.en} {place.en} .")

    def clause(
        self,
        tense: str | None = None,
        with_place: bool = True,
        with_time: bool = True,
        subject: Phrase | None = None,
    ) -> Clause:
        """Draw the parts that are not given; place and time, where allowed, are there at times."""
        tense = tense or self.rng.choices(["present", "past", "perfect"], [4, 3, 4])[0]
        transitive = self.chance(0.75)
        verb = self.zipf(lexicon.TRANSITIVE if transitive else lexicon.INTRANSITIVE)
        return Clause(
            verb=verb,
            tense=tense,
            subject=subject or self.person("nom"),
            object=self.object_of(verb) if transitive else NOTHING,
            place=self.place() if with_place and self.chance(0.3) else NOTHING,
            time=self.time(tense) if with_time and self.chance(0.3) else NOTHING,
            negated=self.chance(0.1),
        )
