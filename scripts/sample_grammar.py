"""The grammar of the sample corpus: it generates random German sentences with their English translations."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import sample_lexicon as lexicon
from sample_lexicon import Noun, Verb

Item = TypeVar("Item")


class Phrase(NamedTuple):
    """A tokenized phrase or sentence in both languages. `plural` is used only for subjects."""

    de: str
    en: str
    plural: bool = False


NOTHING = Phrase("", "")


@dataclass(frozen=True)
class Clause:
    """The parts of a clause. The methods arrange them in the word order of each language."""

    verb: Verb
    tense: str
    subject: Phrase
    object: Phrase
    place: Phrase
    time: Phrase
    negated: bool

    def affirmed(self) -> "Clause":
        """Return the clause without its negation."""
        return replace(self, negated=False)

    def main(self) -> str:
        """Return the German main clause with its subject first and its finite verb second."""
        return f"{self.subject.de} {self.predicate()}"

    def predicate(self) -> str:
        """Return the German main clause after its subject."""
        finite, end = self._verb_parts()
        return f"{finite} {self.middle()} {end}"

    def inverted(self) -> str:
        """Return the German main clause from its finite verb on, without the time adverbial, which may come first."""
        finite, end = self._verb_parts()
        return f"{finite} {self.subject.de} {replace(self, time=NOTHING).middle()} {end}"

    def subordinate(self) -> str:
        """Return the German clause with its finite verb at the end."""
        finite, end = self._verb_parts()
        verb = f"{end} {finite}" if self.tense == "perfect" else end + finite
        return f"{self.subject.de} {self.middle()} {verb}"

    def middle(self) -> str:
        """Return the German words between the finite verb and the end of the clause."""
        negation = "nicht" if self.negated else ""
        return f"{self.time.de} {self.object.de} {negation} {self.place.de}"

    def _verb_parts(self) -> tuple[str, str]:
        """Return the finite verb, and the participle or separable prefix that ends a main clause."""
        if self.tense == "perfect":
            return self.verb.auxiliary(self.subject.plural), self.verb.participle
        return self.verb.finite(self.subject.plural, past=self.tense == "past"), self.verb.prefix

    def english(self) -> str:
        """Return the English clause, whose word order is the same in main and subordinate clauses."""
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
        if self.time.en in lexicon.FREQUENCIES:
            return f"{self.time.en} {predicate}"
        return f"{predicate} {self.time.en}"


class Grammar:
    """Generator of sentences of nine kinds. The same state of `rng` gives the same sentences."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.compounds = list(lexicon.COMPOUNDS)
        rng.shuffle(self.compounds)

    def sentence(self) -> Phrase:
        """Draw a sentence of any kind, with single spaces between its tokens."""
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
        sentence = self.rng.choices(list(kinds), weights=list(kinds.values()))[0]()
        return Phrase(" ".join(sentence.de.split()), " ".join(sentence.en.split()))

    def statement(self) -> Phrase:
        """Draw a main clause. The time adverbial may come first: heute liest die Frau ein Buch ."""
        clause = self.clause()
        fronted = self.chance(0.5) and clause.time != NOTHING
        de = f"{clause.time.de} {clause.inverted()}" if fronted else clause.main()
        return Phrase(f"{de} .", f"{clause.english()} .")

    def modal_statement(self) -> Phrase:
        """Draw a clause with a modal verb and an infinitive at the end: die Frau will ein Buch lesen ."""
        clause = self.clause(tense="present")
        modal = self.rng.choice(lexicon.MODALS)
        plural = clause.subject.plural
        de = f"{clause.subject.de} {modal.finite(plural)} {clause.middle()} {clause.verb.infinitive} ."
        en = f"{clause.subject.en} {modal.english(plural, clause.negated)} {clause.verb.en_base}"
        return Phrase(de, f"{en} {clause.object.en} {clause.place.en} {clause.time.en} .")

    def belief(self) -> Phrase:
        """Draw a sentence with a verb of belief or speech: der Mann glaubt , dass die Frau ein Buch liest ."""
        subject = self.person("nom", plural=False)
        verb, en_verb = self.rng.choice(lexicon.BELIEFS)
        clause = self.clause(place=False)
        de = f"{subject.de} {verb} , dass {clause.subordinate()} ."
        return Phrase(de, f"{subject.en} {en_verb} that {clause.english()} .")

    def conjunction(self) -> Phrase:
        """Draw a main and a subordinate clause in either order: weil der Mann lacht , lacht die Frau ."""
        main = self.clause(place=False, time=False).affirmed()
        sub = self.clause(place=False).affirmed()
        word, en_word = self.rng.choice(lexicon.CONJUNCTIONS)
        if self.chance(0.4):
            de = f"{word} {sub.subordinate()} , {main.inverted()} ."
            return Phrase(de, f"{en_word} {sub.english()} , {main.english()} .")
        de = f"{main.main()} , {word} {sub.subordinate()} ."
        return Phrase(de, f"{main.english()} {en_word} {sub.english()} .")

    def relative(self) -> Phrase:
        """Draw a main clause with a relative clause at its subject: die Frau , die lacht , liest ein Buch ."""
        noun = self.zipf(lexicon.PEOPLE)
        head = self.noun_phrase(noun, "nom", definite=True, adjective=self.chance(0.2))
        # in the nominative the relative pronoun is the definite article
        pronoun = Phrase(head.de.split()[0], "who", head.plural)
        inner = self.clause(time=False, subject=pronoun).affirmed()
        outer = self.clause(place=False, time=False, subject=head).affirmed()
        de = f"{head.de} , {inner.subordinate()} , {outer.predicate()} ."
        return Phrase(de, f"{head.en} {inner.english()} {outer.english_predicate()} .")

    def question(self) -> Phrase:
        """Draw a yes-no question about the past, such as "hat die Frau ein Buch gelesen ?"."""
        clause = self.clause(tense="perfect", time=False).affirmed()
        en = f"did {clause.subject.en} {clause.verb.en_base} {clause.object.en} {clause.place.en} ?"
        return Phrase(f"{clause.inverted()} ?", en)

    def passive(self) -> Phrase:
        """Draw a clause in the passive: das Buch wurde von der Frau gelesen ."""
        verb = self.zipf([verb for verb in lexicon.TRANSITIVE if verb.takes in ("t", "o", "r")])
        subject = self.noun_phrase(self.thing(compound=0.25), "nom")
        agent = self.person("dat")
        if self.chance(0.5):
            auxiliary, be = ("wurden", "were") if subject.plural else ("wurde", "was")
        else:
            auxiliary, be = ("werden", "are") if subject.plural else ("wird", "is")
        de = f"{subject.de} {auxiliary} von {agent.de} {verb.participle} ."
        return Phrase(de, f"{subject.en} {be} {verb.en_participle} by {agent.en} .")

    def purpose(self) -> Phrase:
        """Draw a clause with an infinitive of purpose: die Frau geht in den Garten , um ein Buch zu lesen ."""
        clause = self.clause(tense="present", place=False, time=False)
        place = self.noun_phrase(self.zipf(lexicon.PLACES), "acc", definite=True, plural=False, adjective=False)
        go, en_go = ("gehen", "go") if clause.subject.plural else ("geht", "goes")
        to = "to" if self.chance(0.5) else "in order to"
        de = f"{clause.subject.de} {go} in {place.de} , um {clause.object.de} {clause.verb.zu_infinitive} ."
        return Phrase(de, f"{clause.subject.en} {en_go} to {place.en} {to} {clause.verb.en_base} {clause.object.en} .")

    def existence(self) -> Phrase:
        """Draw a sentence about the existence of something at a place: im Garten gibt es einen Tisch ."""
        place = self.place()
        thing = self.noun_phrase(self.thing(compound=0.3), "acc", definite=False)
        be = "are" if thing.plural else "is"
        return Phrase(f"{place.de} gibt es {thing.de} .", f"there {be} {thing.en} {place.en} .")

    def clause(self, tense: str = "", place: bool = True, time: bool = True, subject: Phrase | None = None) -> Clause:
        """Draw a clause. The default tense and subject are random. `place` and `time` allow these adverbials."""
        tense = tense or self.rng.choices(["present", "past", "perfect"], [4, 3, 4])[0]
        transitive = self.chance(0.75)
        verb = self.zipf(lexicon.TRANSITIVE if transitive else lexicon.INTRANSITIVE)
        return Clause(
            verb=verb,
            tense=tense,
            subject=subject or self.person("nom"),
            object=self.object_of(verb) if transitive else NOTHING,
            place=self.place() if place and self.chance(0.3) else NOTHING,
            time=self.time(tense) if time and self.chance(0.3) else NOTHING,
            negated=self.chance(0.1),
        )

    def noun_phrase(
        self,
        noun: Noun,
        case: str,
        definite: bool | None = None,
        plural: bool | None = None,
        adjective: bool | None = None,
    ) -> Phrase:
        """Draw a noun phrase with this noun. Arguments that are None are random."""
        definite = self.chance(0.6) if definite is None else definite
        plural = self.chance(0.2) if plural is None else plural
        adjective = self.chance(0.35) if adjective is None else adjective
        article, ending = lexicon.article_and_ending(noun, case, definite, plural)
        de, en = noun.german(case, plural), noun.english(plural)
        if adjective:
            stem, glosses = self.zipf(lexicon.ADJECTIVES)
            de, en = f"{stem}{ending} {de}", f"{self.rng.choice(glosses.split('|'))} {en}"
        en_article = "the" if definite else "" if plural else "an" if en[0] in "aeiou" else "a"
        return Phrase(f"{article} {de}", f"{en_article} {en}", plural)

    def person(self, case: str, plural: bool | None = None) -> Phrase:
        """Draw a phrase for a person."""
        return self.noun_phrase(self.zipf(lexicon.PEOPLE), case, plural=plural)

    def thing(self, compound: float) -> Noun:
        """Draw a thing. `compound` is the probability that it is a compound."""
        return self.zipf(self.compounds if self.chance(compound) else lexicon.THINGS)

    def object_of(self, verb: Verb) -> Phrase:
        """Draw an object of the kind that the verb takes."""
        if verb.takes == "p" or (verb.takes == "a" and self.chance(0.3)):
            return self.person("acc")
        if verb.takes == "l":
            return self.noun_phrase(self.zipf([*lexicon.PLACES, lexicon.BANK]), "acc", plural=False)
        if endings := lexicon.OBJECT_ENDINGS.get(verb.takes):
            pool = [noun for noun in lexicon.THINGS + self.compounds if noun.singular.lower().endswith(endings)]
            return self.noun_phrase(self.zipf(pool), "acc")
        return self.noun_phrase(self.thing(compound=0.25), "acc")

    def place(self) -> Phrase:
        """Draw an adverbial of place: im Garten, neben einer Bank."""
        de, en = self.zipf(lexicon.PREPOSITIONS)
        if self.chance(0.08):
            noun, de, en = lexicon.BENCH, "neben", "next to"
        else:
            noun = self.zipf(lexicon.PLACES)
        phrase = self.noun_phrase(noun, "dat", plural=False, adjective=self.chance(0.15))
        return Phrase(f"{de} {phrase.de}".replace("in dem ", "im "), f"{en} {phrase.en}")

    def time(self, tense: str) -> Phrase:
        """Draw an adverbial of time that fits the tense."""
        needed = "present" if tense == "present" else "past"
        de, en, _ = self.rng.choice([time for time in lexicon.TIMES if time[2] in (needed, "any")])
        return Phrase(de, en)

    def zipf(self, items: Sequence[Item]) -> Item:
        """Draw an item with a probability proportional to 1 / (rank + 3), so that the last items are rare."""
        return self.rng.choices(items, weights=[1 / (rank + 3) for rank in range(len(items))])[0]

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.rng.random() < probability
