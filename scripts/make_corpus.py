#!/usr/bin/env python3
"""Generate a small German-English parallel corpus from a hand-written grammar.

The sentences are simple but they have what makes phrase-based translation from German hard: verb-final
subordinate clauses, participles and infinitives at the end of the clause, separable prefixes, V2 inversion,
case-marked articles, productive compounds (one German word, two or three English ones) and nouns whose
translation depends on the context. Words are drawn from a Zipf-like distribution, so that the test set holds
rare and unseen words, as a low-resource corpus does.

    python make_corpus.py OUT_DIR [--train 6000] [--dev 400] [--test 400] [--seed 1]

writes OUT_DIR/{train,dev,test}.{de,en}: one sentence a line, tokenized, truecased, UTF-8.
No sentence of dev or test occurs in train.
"""

import argparse
import itertools
import pathlib
import random

# ---------------------------------------------------------------- lexicon
# noun: German singular, gender, German plural, dative plural, English singular, English plural
PEOPLE = """Mann m Männer Männern man men; Frau f Frauen Frauen woman women; Kind n Kinder Kindern child children;
Lehrer m Lehrer Lehrern teacher teachers; Ärztin f Ärztinnen Ärztinnen doctor doctors; Bäcker m Bäcker Bäckern baker bakers;
Nachbarin f Nachbarinnen Nachbarinnen neighbour neighbours; Mädchen n Mädchen Mädchen girl girls;
Bürgermeister m Bürgermeister Bürgermeistern mayor mayors; Arbeiter m Arbeiter Arbeitern worker workers;
Königin f Königinnen Königinnen queen queens; Schüler m Schüler Schülern pupil pupils; Gärtner m Gärtner Gärtnern gardener gardeners;
Richterin f Richterinnen Richterinnen judge judges; Großmutter f Großmütter Großmüttern grandmother grandmothers;
Fahrer m Fahrer Fahrern driver drivers; Sängerin f Sängerinnen Sängerinnen singer singers; Maler m Maler Malern painter painters;
Verkäuferin f Verkäuferinnen Verkäuferinnen shop_assistant shop_assistants; Dieb m Diebe Dieben thief thieves;
Bruder m Brüder Brüdern brother brothers; Schwester f Schwestern Schwestern sister sisters; Wirt m Wirte Wirten innkeeper innkeepers;
Tischler m Tischler Tischlern carpenter carpenters; Forscherin f Forscherinnen Forscherinnen researcher researchers;
Gast m Gäste Gästen guest guests; Freund m Freunde Freunden friend friends; Bäuerin f Bäuerinnen Bäuerinnen farmer farmers"""
THINGS = """Buch n Bücher Büchern book books; Brief m Briefe Briefen letter letters; Tür f Türen Türen door doors;
Fenster n Fenster Fenstern window windows; Tisch m Tische Tischen table tables; Stuhl m Stühle Stühlen chair chairs;
Zeitung f Zeitungen Zeitungen newspaper newspapers; Schlüssel m Schlüssel Schlüsseln key keys; Lampe f Lampen Lampen lamp lamps;
Bild n Bilder Bildern picture pictures; Korb m Körbe Körben basket baskets; Uhr f Uhren Uhren clock clocks;
Handschuh m Handschuhe Handschuhen glove gloves; Brot n Brote Broten loaf_of_bread loaves_of_bread; Kuchen m Kuchen Kuchen cake cakes;
Fahrrad n Fahrräder Fahrrädern bicycle bicycles; Wagen m Wagen Wagen car cars; Mantel m Mäntel Mänteln coat coats;
Tasche f Taschen Taschen bag bags; Schirm m Schirme Schirmen umbrella umbrellas; Karte f Karten Karten map maps;
Messer n Messer Messern knife knives; Teller m Teller Tellern plate plates; Flasche f Flaschen Flaschen bottle bottles;
Koffer m Koffer Koffern suitcase suitcases; Geige f Geigen Geigen violin violins; Kette f Ketten Ketten chain chains;
Ball m Bälle Bällen ball balls; Pferd n Pferde Pferden horse horses; Hund m Hunde Hunden dog dogs; Katze f Katzen Katzen cat cats;
Vogel m Vögel Vögeln bird birds; Blume f Blumen Blumen flower flowers; Apfel m Äpfel Äpfeln apple apples;
Kerze f Kerzen Kerzen candle candles; Spiegel m Spiegel Spiegeln mirror mirrors; Seil n Seile Seilen rope ropes;
Schachtel f Schachteln Schachteln box boxes; Hut m Hüte Hüten hat hats; Ring m Ringe Ringen ring rings"""
PLACES = """Garten m Gärten Gärten garden gardens; Haus n Häuser Häusern house houses; Schule f Schulen Schulen school schools;
Stadt f Städte Städten town towns; Dorf n Dörfer Dörfern village villages; Kirche f Kirchen Kirchen church churches;
Markt m Märkte Märkten market markets; Wald m Wälder Wäldern forest forests; Küche f Küchen Küchen kitchen kitchens;
Bahnhof m Bahnhöfe Bahnhöfen railway_station railway_stations; Krankenhaus n Krankenhäuser Krankenhäusern hospital hospitals;
Hafen m Häfen Häfen harbour harbours; Werkstatt f Werkstätten Werkstätten workshop workshops; Keller m Keller Kellern cellar cellars;
Hof m Höfe Höfen courtyard courtyards; Laden m Läden Läden shop shops; Turm m Türme Türmen tower towers;
Zimmer n Zimmer Zimmern room rooms; Straße f Straßen Straßen street streets; Park m Parks Parks park parks"""
COMPOUND_HEADS = [
    "Tür",
    "Fenster",
    "Tisch",
    "Stuhl",
    "Lampe",
    "Uhr",
    "Schlüssel",
    "Buch",
    "Karte",
    "Tasche",
    "Messer",
    "Kuchen",
    "Korb",
    "Flasche",
    "Bild",
    "Wagen",
]
COMPOUND_MODIFIERS = {
    "Holz": "wooden",
    "Garten": "garden",
    "Küchen": "kitchen",
    "Kinder": "children 's",
    "Winter": "winter",
    "Silber": "silver",
    "Apfel": "apple",
    "Haus": "house",
    "Schul": "school",
    "Wein": "wine",
    "Reise": "travel",
    "Papier": "paper",
    "Keller": "cellar",
    "Dorf": "village",
    "Glas": "glass",
    "Eisen": "iron",
}
# adjective stem, English
ADJECTIVES = """alt old; neu new; klein small; groß big|large; rot red; jung young; schön beautiful; schwer heavy; leicht light;
dunkl dark; kalt cold; warm warm; müd tired; freundlich friendly; reich rich; arm poor; krank sick|ill; ruhig quiet; schnell fast;
schmutzig dirty; sauber clean; seltsam strange; wertvoll valuable; kaputt broken; weiß white; schwarz black; blau blue; grün green;
glücklich happy; berühmt famous; traurig sad; klug clever"""
# transitive verb: infinitive, 3sg, 3pl, past 3sg, past 3pl, participle | separable prefix | object | English base 3sg past participle ing
TRANSITIVE = """finden findet finden fand fanden gefunden - t find finds found found finding
lesen liest lesen las lasen gelesen - r read reads read read reading
kaufen kauft kaufen kaufte kauften gekauft - t buy buys bought bought buying
verkaufen verkauft verkaufen verkaufte verkauften verkauft - t sell sells sold sold selling
suchen sucht suchen suchte suchten gesucht - a look_for looks_for looked_for looked_for looking_for
sehen sieht sehen sah sahen gesehen - a see sees saw seen seeing
machen macht machen machte machten gemacht auf o open opens opened opened opening
machen macht machen machte machten gemacht zu o close closes closed closed closing
heben hebt heben hob hoben gehoben auf t pick_up picks_up picked_up picked_up picking_up
rufen ruft rufen rief riefen gerufen an p call calls called called calling
laden lädt laden lud luden geladen ein p invite invites invited invited inviting
bringen bringt bringen brachte brachten gebracht mit t bring_along brings_along brought_along brought_along bringing_along
werfen wirft werfen warf warfen geworfen weg t throw_away throws_away threw_away thrown_away throwing_away
malen malt malen malte malten gemalt - a paint paints painted painted painting
verlieren verliert verlieren verlor verloren verloren - t lose loses lost lost losing
vergessen vergisst vergessen vergaß vergaßen vergessen - t forget forgets forgot forgotten forgetting
stehlen stiehlt stehlen stahl stahlen gestohlen - t steal steals stole stolen stealing
reparieren repariert reparieren reparierte reparierten repariert - t repair repairs repaired repaired repairing
besuchen besucht besuchen besuchte besuchten besucht - p visit visits visited visited visiting
kennen kennt kennen kannte kannten gekannt - p know knows knew known knowing
verstecken versteckt verstecken versteckte versteckten versteckt - t hide hides hid hidden hiding
tragen trägt tragen trug trugen getragen - t carry carries carried carried carrying
verlassen verlässt verlassen verließ verließen verlassen - l leave leaves left left leaving
beschreiben beschreibt beschreiben beschrieb beschrieben beschrieben - a describe describes described described describing
holen holt holen holte holten geholt ab p pick_up picks_up picked_up picked_up picking_up
waschen wäscht waschen wusch wuschen gewaschen - t wash washes washed washed washing"""
# intransitive verb: same columns, auxiliary in place of the object
INTRANSITIVE = """lachen lacht lachen lachte lachten gelacht - hat laugh laughs laughed laughed laughing
schlafen schläft schlafen schlief schliefen geschlafen - hat sleep sleeps slept slept sleeping
arbeiten arbeitet arbeiten arbeitete arbeiteten gearbeitet - hat work works worked worked working
stehen steht stehen stand standen gestanden auf ist get_up gets_up got_up got_up getting_up
kommen kommt kommen kam kamen gekommen an ist arrive arrives arrived arrived arriving
schlafen schläft schlafen schlief schliefen geschlafen ein ist fall_asleep falls_asleep fell_asleep fallen_asleep falling_asleep
warten wartet warten wartete warteten gewartet - hat wait waits waited waited waiting
singen singt singen sang sangen gesungen - hat sing sings sang sung singing
spielen spielt spielen spielte spielten gespielt - hat play plays played played playing
hören hört hören hörte hörten gehört auf hat stop stops stopped stopped stopping
tanzen tanzt tanzen tanzte tanzten getanzt - hat dance dances danced danced dancing
bleiben bleibt bleiben blieb blieben geblieben - ist stay stays stayed stayed staying"""
TIMES = {
    "gestern": ("yesterday", "past"),
    "heute": ("today", "any"),
    "jeden Tag": ("every day", "present"),
    "am Morgen": ("in the morning", "any"),
    "am Abend": ("in the evening", "any"),
    "letzte Woche": ("last week", "past"),
    "manchmal": ("sometimes", "present"),
    "im Winter": ("in winter", "any"),
    "nach dem Essen": ("after the meal", "any"),
    "vor drei Jahren": ("three years ago", "past"),
    "immer": ("always", "present"),
    "im Sommer": ("in summer", "any"),
    "am Sonntag": ("on Sunday", "any"),
    "vor zwei Tagen": ("two days ago", "past"),
}
BELIEF = {
    "glaubt": "believes",
    "weiß": "knows",
    "sagt": "says",
    "hofft": "hopes",
    "fürchtet": "fears",
    "erzählt": "tells us",
}
CONJUNCTIONS = {
    "weil": "because",
    "obwohl": "although",
    "wenn": "when",
    "während": "while",
    "bevor": "before",
    "nachdem": "after",
}
MODALS = {
    "will": ("wollen", "wants to", "want to"),
    "kann": ("können", "can", "can"),
    "muss": ("müssen", "has to", "have to"),
    "darf": ("dürfen", "may", "may"),
    "soll": ("sollen", "should", "should"),
}
PLACE_PREPOSITIONS = {"in": "in", "hinter": "behind", "vor": "in front of", "neben": "next to"}
# the bench stands in a garden, the bank is something one visits: same German word
AMBIGUOUS_BENCH = ("Bank", "f", "Bänke", "Bänken", "bench", "benches")
AMBIGUOUS_BANK = ("Bank", "f", "Banken", "Banken", "bank", "banks")


def english(word: str) -> str:
    return word.replace("_", " ")


class Noun:
    def __init__(self, de, gender, plural, dative_plural, en, en_plural):
        self.de, self.gender, self.plural, self.dative_plural = de, gender, plural, dative_plural
        self.en, self.en_plural = english(en), english(en_plural)


class Verb:
    def __init__(self, line):
        (
            self.inf,
            self.sg,
            self.pl,
            self.past_sg,
            self.past_pl,
            self.participle,
            prefix,
            self.takes,
            base,
            third,
            past,
            part,
            ing,
        ) = line.split()
        self.prefix = "" if prefix == "-" else prefix
        self.en_base, self.en_third, self.en_past, self.en_part, self.en_ing = map(
            english, (base, third, past, part, ing)
        )

    def finite(self, plural, past):
        return (self.past_pl if plural else self.past_sg) if past else (self.pl if plural else self.sg)

    def joined_finite(self, plural, past):
        return self.prefix + self.finite(plural, past)

    @property
    def past_participle(self):
        return self.prefix + self.participle

    @property
    def infinitive(self):
        return self.prefix + self.inf

    @property
    def zu_infinitive(self):
        return [f"{self.prefix}zu{self.inf}"] if self.prefix else ["zu", self.inf]

    def en_finite(self, plural, past):
        return self.en_past if past else (self.en_base if plural else self.en_third)


def nouns(text):
    return [Noun(*entry.split()) for entry in text.replace("\n", " ").split(";")]


DEFINITE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den"}
EIN = {"nom": "ein eine ein keine", "acc": "einen eine ein keine", "dat": "einem einer einem keinen"}
ENDING_DEFINITE = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en"}
ENDING_EIN = {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en"}
ENDING_BARE_PLURAL = {"nom": "e", "acc": "e", "dat": "en"}


class Grammar:
    def __init__(self, rng: random.Random):
        self.rng = rng
        self.people, self.things, self.places = nouns(PEOPLE), nouns(THINGS), nouns(PLACES)
        heads = {noun.de: noun for noun in self.things}
        self.compounds = [
            Noun(
                mod + head.de.lower(),
                head.gender,
                mod + head.plural.lower(),
                mod + head.dative_plural.lower(),
                f"{en} {head.en}".replace(" ", "_"),
                f"{en} {head.en_plural}".replace(" ", "_"),
            )
            for (mod, en), head in itertools.product(COMPOUND_MODIFIERS.items(), (heads[h] for h in COMPOUND_HEADS))
        ]
        rng.shuffle(self.compounds)
        self.bench, self.bank = Noun(*AMBIGUOUS_BENCH), Noun(*AMBIGUOUS_BANK)
        self.adjectives = [entry.split(None, 1) for entry in ADJECTIVES.replace("\n", " ").split(";")]
        self.transitive = [Verb(line) for line in TRANSITIVE.splitlines()]
        self.intransitive = [Verb(line) for line in INTRANSITIVE.splitlines()]

    # ---- drawing
    def zipf(self, items):
        """Draw an item with probability falling as 1 / rank, so that the last ones are rare."""
        return self.rng.choices(items, weights=[1 / (rank + 3) for rank in range(len(items))])[0]

    def chance(self, probability):
        return self.rng.random() < probability

    # ---- phrases: each returns (German tokens, English tokens, is plural)
    def noun_phrase(self, noun, case, definite=None, plural=None, adjective=None):
        definite = self.chance(0.6) if definite is None else definite
        plural = self.chance(0.2) if plural is None else plural
        adjective = self.chance(0.35) if adjective is None else adjective
        column = 3 if plural else "mfn".index(noun.gender)
        de, en = [], []
        if definite:
            de.append(DEFINITE[case].split()[column])
            en.append("the")
            ending = ENDING_DEFINITE[case].split()[column]
        elif plural:
            ending = ENDING_BARE_PLURAL[case]
        else:
            de.append(EIN[case].split()[column])
            ending = ENDING_EIN[case].split()[column]
        words = []
        if adjective:
            stem, gloss = self.zipf(self.adjectives)
            de.append(stem + ending)
            words.append(self.rng.choice(gloss.strip().split("|")))
        form = (noun.dative_plural if case == "dat" else noun.plural) if plural else noun.de
        de.append(form)
        words += (noun.en_plural if plural else noun.en).split()
        if not definite and not plural:
            en.append("an" if words[0][0] in "aeiou" else "a")
        return de, en + words, plural

    def person(self, case, **options):
        return self.noun_phrase(self.zipf(self.people), case, **options)

    def object(self, verb):
        if verb.takes == "p":
            return self.person("acc")
        if verb.takes == "l":
            return self.noun_phrase(self.zipf(self.places + [self.bank]), "acc", plural=False)
        if verb.takes == "o":
            pool = [n for n in self.things if n.de in ("Tür", "Fenster", "Schachtel", "Flasche", "Koffer", "Tasche")]
            pool += [c for c in self.compounds if c.de.endswith(("tür", "fenster", "flasche", "tasche"))]
            return self.noun_phrase(self.zipf(pool), "acc")
        if verb.takes == "r":
            pool = [n for n in self.things if n.de in ("Buch", "Brief", "Zeitung", "Karte")]
            pool += [c for c in self.compounds if c.de.endswith(("buch", "karte"))]
            return self.noun_phrase(self.zipf(pool), "acc")
        if verb.takes == "a" and self.chance(0.3):
            return self.person("acc")
        pool = self.compounds if self.chance(0.25) else self.things
        return self.noun_phrase(self.zipf(pool), "acc")

    def place(self):
        preposition = self.zipf(list(PLACE_PREPOSITIONS))
        if self.chance(0.08):
            noun, preposition = self.bench, "neben"
        else:
            noun = self.zipf(self.places)
        de, en, _ = self.noun_phrase(noun, "dat", plural=False, adjective=self.chance(0.15))
        if preposition == "in" and de[0] == "dem":
            de = ["im"] + de[1:]
        else:
            de = [preposition] + de
        return de, PLACE_PREPOSITIONS[preposition].split() + en

    def time(self, tense):
        fitting = [de for de, (_, t) in TIMES.items() if t in (tense, "any")]
        de = self.rng.choice(fitting)
        return de.split(), TIMES[de][0].split()

    # ---- the clause: subject, and all else with the verb's parts apart
    def clause(self, tense=None, with_place=None, with_time=None, subject=None):
        """Return a dict of the parts; main_clause and subordinate_clause put them in order."""
        tense = tense or self.rng.choices(["present", "past", "perfect"], [4, 3, 4])[0]
        transitive = self.chance(0.75)
        verb = self.zipf(self.transitive if transitive else self.intransitive)
        parts = {"verb": verb, "tense": tense, "subject": subject or self.person("nom")}
        parts["object"] = self.object(verb)[:2] if transitive else ([], [])
        parts["place"] = self.place() if (self.chance(0.3) if with_place is None else with_place) else ([], [])
        time_tense = "present" if tense == "present" else "past"
        parts["time"] = self.time(time_tense) if (self.chance(0.3) if with_time is None else with_time) else ([], [])
        parts["negated"] = self.chance(0.1)
        parts["auxiliary"] = ("hat", "haben") if transitive or verb.takes == "hat" else ("ist", "sind")
        return parts

    def english_clause(self, p, en_subject=None):
        verb, plural = p["verb"], p["subject"][2]
        subject = p["subject"][1] if en_subject is None else en_subject
        past = p["tense"] != "present"
        if p["negated"]:
            auxiliary = "did" if past else ("do" if plural else "does")
            predicate = [auxiliary, "not"] + verb.en_base.split()
        else:
            predicate = verb.en_finite(plural, past).split()
        frequency = p["time"][1] if p["time"][1] in (["sometimes"], ["always"]) else []
        rest = [] if frequency else p["time"][1]
        return subject + frequency + predicate + p["object"][1] + p["place"][1] + rest

    def middle(self, p):
        return p["time"][0] + (p["object"][0] + (["nicht"] if p["negated"] else [])) + p["place"][0]

    def german_main(self, p, fronted=False):
        """Verb-second order; participles and separable prefixes go to the end of the clause."""
        verb, plural = p["verb"], p["subject"][2]
        if p["tense"] == "perfect":
            finite, end = p["auxiliary"][plural], [verb.past_participle]
        else:
            finite, end = verb.finite(plural, p["tense"] == "past"), [verb.prefix] if verb.prefix else []
        if fronted and p["time"][0]:
            body = p["object"][0] + (["nicht"] if p["negated"] else []) + p["place"][0]
            return p["time"][0] + [finite] + p["subject"][0] + body + end
        return p["subject"][0] + [finite] + self.middle(p) + end

    def german_subordinate(self, p):
        """Verb-final order."""
        verb, plural = p["verb"], p["subject"][2]
        if p["tense"] == "perfect":
            end = [verb.past_participle, p["auxiliary"][plural]]
        else:
            end = [verb.joined_finite(plural, p["tense"] == "past")]
        return p["subject"][0] + self.middle(p) + end

    # ---- sentences
    def statement(self):
        p = self.clause()
        return self.german_main(p, fronted=self.chance(0.5)) + ["."], self.english_clause(p) + ["."]

    def modal_statement(self):
        p = self.clause(tense="present")
        modal = self.rng.choice(list(MODALS))
        plural_de, en_sg, en_pl = MODALS[modal]
        plural = p["subject"][2]
        de = p["subject"][0] + [plural_de if plural else modal] + self.middle(p) + [p["verb"].infinitive]
        predicate = en_pl if plural else en_sg
        if p["negated"]:
            predicate = {
                "can": "can not",
                "may": "may not",
                "should": "should not",
                "wants to": "does not want to",
                "want to": "do not want to",
                "has to": "does not have to",
                "have to": "do not have to",
            }[predicate]
        en = (
            p["subject"][1]
            + predicate.split()
            + p["verb"].en_base.split()
            + p["object"][1]
            + p["place"][1]
            + p["time"][1]
        )
        return de + ["."], en + ["."]

    def belief(self):
        de_subject, en_subject, _ = self.person("nom", plural=False)
        verb = self.rng.choice(list(BELIEF))
        p = self.clause(with_place=False)
        return (
            de_subject + [verb, ",", "dass"] + self.german_subordinate(p) + ["."],
            en_subject + BELIEF[verb].split() + ["that"] + self.english_clause(p) + ["."],
        )

    def conjunction(self):
        first, second = self.clause(with_time=False, with_place=False), self.clause(with_place=False)
        first["negated"] = second["negated"] = False
        conj = self.rng.choice(list(CONJUNCTIONS))
        main, sub = first, second
        if self.chance(0.4):
            # the subordinate clause comes first, and the main clause begins with its verb
            verb, plural = main["verb"], main["subject"][2]
            if main["tense"] == "perfect":
                finite, end = main["auxiliary"][plural], [verb.past_participle]
            else:
                finite, end = verb.finite(plural, main["tense"] == "past"), [verb.prefix] if verb.prefix else []
            de = [conj] + self.german_subordinate(sub) + [",", finite] + main["subject"][0] + main["object"][0] + end
            en = [CONJUNCTIONS[conj]] + self.english_clause(sub) + [","] + self.english_clause(main)
        else:
            de = self.german_main(main) + [",", conj] + self.german_subordinate(sub)
            en = self.english_clause(main) + [CONJUNCTIONS[conj]] + self.english_clause(sub)
        return de + ["."], en + ["."]

    def relative(self):
        noun = self.zipf(self.people)
        de_head, en_head, plural = self.noun_phrase(noun, "nom", definite=True, adjective=self.chance(0.2))
        pronoun = "die" if plural else {"m": "der", "f": "die", "n": "das"}[noun.gender]
        inner = self.clause(with_time=False, subject=([pronoun], ["who"], plural))
        inner["negated"] = False
        outer = self.clause(with_time=False, with_place=False, subject=(de_head, en_head, plural))
        outer["negated"] = False
        main = self.german_main(outer)[len(de_head) :]
        de = de_head + [","] + self.german_subordinate(inner) + [","] + main
        en = en_head + self.english_clause(inner) + self.english_clause(outer)[len(en_head) :]
        return de + ["."], en + ["."]

    def question(self):
        p = self.clause(tense="perfect", with_time=False)
        p["negated"] = False
        de = [p["auxiliary"][p["subject"][2]]] + p["subject"][0] + self.middle(p) + [p["verb"].past_participle, "?"]
        en = ["did"] + p["subject"][1] + p["verb"].en_base.split() + p["object"][1] + p["place"][1] + ["?"]
        return de, en

    def passive(self):
        verb = self.zipf([v for v in self.transitive if v.takes in "tor"])
        pool = self.compounds if self.chance(0.25) else self.things
        de_subject, en_subject, plural = self.noun_phrase(self.zipf(pool), "nom")
        de_agent, en_agent, _ = self.person("dat")
        past = self.chance(0.5)
        auxiliary = ("wurden" if past else "werden") if plural else ("wurde" if past else "wird")
        be = ("were" if past else "are") if plural else ("was" if past else "is")
        particle = verb.en_part.split()
        return (
            de_subject + [auxiliary, "von"] + de_agent + [verb.past_participle, "."],
            en_subject + [be] + particle + ["by"] + en_agent + ["."],
        )

    def purpose(self):
        p = self.clause(tense="present", with_time=False, with_place=False)
        de_place, en_place, _ = self.noun_phrase(
            self.zipf(self.places), "acc", definite=True, plural=False, adjective=False
        )
        plural, verb = p["subject"][2], p["verb"]
        de = (
            p["subject"][0]
            + ["gehen" if plural else "geht", "in"]
            + de_place
            + [",", "um"]
            + p["object"][0]
            + verb.zu_infinitive
        )
        en = (
            p["subject"][1]
            + ["go" if plural else "goes", "to"]
            + en_place
            + ["in", "order", "to"][(2 if self.chance(0.5) else 0) :]
        )
        return de + ["."], en + verb.en_base.split() + p["object"][1] + ["."]

    def existence(self):
        de_place, en_place = self.place()
        pool = self.compounds if self.chance(0.3) else self.things
        de_thing, en_thing, plural = self.noun_phrase(self.zipf(pool), "acc", definite=False)
        be = "are" if plural else "is"
        return de_place + ["gibt", "es"] + de_thing + ["."], ["there", be] + en_thing + en_place + ["."]

    def sentence(self):
        kinds = [
            self.statement,
            self.modal_statement,
            self.belief,
            self.conjunction,
            self.relative,
            self.question,
            self.passive,
            self.purpose,
            self.existence,
        ]
        return self.rng.choices(kinds, weights=[6, 4, 3, 4, 3, 2, 2, 2, 2])[0]()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=6000)
    parser.add_argument("--dev", type=int, default=400)
    parser.add_argument("--test", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    grammar = Grammar(random.Random(args.seed))
    seen, splits = set(), {}
    for split in ("test", "dev", "train"):
        pairs = splits[split] = []
        while len(pairs) < getattr(args, split):
            de, en = (" ".join(side) for side in grammar.sentence())
            if de not in seen:
                seen.add(de)
                pairs.append((de, en))
    args.out.mkdir(parents=True, exist_ok=True)
    for split, pairs in splits.items():
        for side, language in enumerate(("de", "en")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (args.out / f"{split}.{language}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
