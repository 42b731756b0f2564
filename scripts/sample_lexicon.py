"""The lexicon of the sample corpus, German words with their English translations, frequent words first.

Entries end at ";" or at the end of the line. The columns of an entry are the fields of its class. In a column, "_"
means a space and "-" means empty.
"""

import re
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True)
class Noun:
    """A noun with its distinct forms. These nouns have a special case form only in the dative plural."""

    singular: str
    gender: str
    plural: str
    dative_plural: str
    en_singular: str
    en_plural: str

    def german(self, case: str, plural: bool) -> str:
        """Return the form for this case ("nom", "acc" or "dat") and number."""
        if not plural:
            return self.singular
        return self.dative_plural if case == "dat" else self.plural

    def english(self, plural: bool) -> str:
        """Return the form for this number."""
        return self.en_plural if plural else self.en_singular

    def compound(self, modifier: str, en_modifier: str) -> "Noun":
        """Return the compound that has this noun as its head: one word in German, two or three in English."""
        return replace(
            self,
            singular=modifier + self.singular.lower(),
            plural=modifier + self.plural.lower(),
            dative_plural=modifier + self.dative_plural.lower(),
            en_singular=f"{en_modifier} {self.en_singular}",
            en_plural=f"{en_modifier} {self.en_plural}",
        )


@dataclass(frozen=True)
class Verb:
    """A verb in the third person. The German forms have no separable prefix.

    `takes` is the kind of object: t a thing, r something to read, o something to open, p a person, l a place,
    a a person or a thing. For an intransitive verb it is the auxiliary of the perfect, hat or ist.
    """

    bare_infinitive: str
    singular: str
    plural: str
    past_singular: str
    past_plural: str
    bare_participle: str
    prefix: str
    takes: str
    en_base: str
    en_singular: str
    en_past: str
    en_participle: str

    @property
    def infinitive(self) -> str:
        """The infinitive with its prefix: aufmachen."""
        return self.prefix + self.bare_infinitive

    @property
    def zu_infinitive(self) -> str:
        """The infinitive with zu, which follows the prefix: aufzumachen, but zu lesen."""
        return f"{self.prefix}zu{self.bare_infinitive}" if self.prefix else f"zu {self.bare_infinitive}"

    @property
    def participle(self) -> str:
        """The past participle with its prefix: aufgemacht."""
        return self.prefix + self.bare_participle

    def auxiliary(self, plural: bool) -> str:
        """Return the auxiliary of the perfect."""
        forms = ("ist", "sind") if self.takes == "ist" else ("hat", "haben")
        return forms[plural]

    def finite(self, plural: bool, past: bool) -> str:
        """Return the German finite form without its prefix."""
        forms = (self.past_singular, self.past_plural) if past else (self.singular, self.plural)
        return forms[plural]

    def en_finite(self, plural: bool, past: bool) -> str:
        """Return the English finite form of an affirmative clause."""
        return self.en_past if past else self.en_base if plural else self.en_singular


class Modal(NamedTuple):
    """A modal verb in the third person."""

    singular: str
    plural: str
    en_singular: str
    en_plural: str

    def finite(self, plural: bool) -> str:
        """Return the German finite form."""
        return self.plural if plural else self.singular

    def english(self, plural: bool, negated: bool) -> str:
        """Return the English finite form, negated by "do" where it inflects: can not, does not have to."""
        form = self.en_plural if plural else self.en_singular
        if negated and self.en_singular != self.en_plural:
            return f"{'do' if plural else 'does'} not {self.en_plural}"
        return f"{form} not" if negated else form


def columns(text: str) -> list[list[str]]:
    """Split the text into entries, and each entry into columns."""
    entries = [entry.split() for entry in re.split("[;\n]", text.strip()) if entry]
    return [["" if word == "-" else word.replace("_", " ") for word in entry] for entry in entries]


def nouns(text: str) -> list[Noun]:
    """Read each entry as a noun."""
    return [Noun(*entry) for entry in columns(text)]


def verbs(text: str) -> list[Verb]:
    """Read each entry as a verb."""
    return [Verb(*entry) for entry in columns(text)]


PEOPLE = nouns("""
Mann m Männer Männern man men; Frau f Frauen Frauen woman women; Kind n Kinder Kindern child children;
Lehrer m Lehrer Lehrern teacher teachers; Ärztin f Ärztinnen Ärztinnen doctor doctors;
Bäcker m Bäcker Bäckern baker bakers; Nachbarin f Nachbarinnen Nachbarinnen neighbour neighbours;
Mädchen n Mädchen Mädchen girl girls; Bürgermeister m Bürgermeister Bürgermeistern mayor mayors;
Arbeiter m Arbeiter Arbeitern worker workers; Königin f Königinnen Königinnen queen queens;
Schüler m Schüler Schülern pupil pupils; Gärtner m Gärtner Gärtnern gardener gardeners;
Richterin f Richterinnen Richterinnen judge judges; Großmutter f Großmütter Großmüttern grandmother grandmothers;
Fahrer m Fahrer Fahrern driver drivers; Sängerin f Sängerinnen Sängerinnen singer singers;
Maler m Maler Malern painter painters; Verkäuferin f Verkäuferinnen Verkäuferinnen shop_assistant shop_assistants;
Dieb m Diebe Dieben thief thieves; Bruder m Brüder Brüdern brother brothers;
Schwester f Schwestern Schwestern sister sisters; Wirt m Wirte Wirten innkeeper innkeepers;
Tischler m Tischler Tischlern carpenter carpenters; Forscherin f Forscherinnen Forscherinnen researcher researchers;
Gast m Gäste Gästen guest guests; Freund m Freunde Freunden friend friends;
Bäuerin f Bäuerinnen Bäuerinnen farmer farmers
""")
THINGS = nouns("""
Buch n Bücher Büchern book books; Brief m Briefe Briefen letter letters; Tür f Türen Türen door doors;
Fenster n Fenster Fenstern window windows; Tisch m Tische Tischen table tables; Stuhl m Stühle Stühlen chair chairs;
Zeitung f Zeitungen Zeitungen newspaper newspapers; Schlüssel m Schlüssel Schlüsseln key keys;
Lampe f Lampen Lampen lamp lamps; Bild n Bilder Bildern picture pictures; Korb m Körbe Körben basket baskets;
Uhr f Uhren Uhren clock clocks; Handschuh m Handschuhe Handschuhen glove gloves;
Brot n Brote Broten loaf_of_bread loaves_of_bread; Kuchen m Kuchen Kuchen cake cakes;
Fahrrad n Fahrräder Fahrrädern bicycle bicycles; Wagen m Wagen Wagen car cars; Mantel m Mäntel Mänteln coat coats;
Tasche f Taschen Taschen bag bags; Schirm m Schirme Schirmen umbrella umbrellas; Karte f Karten Karten map maps;
Messer n Messer Messern knife knives; Teller m Teller Tellern plate plates; Flasche f Flaschen Flaschen bottle bottles;
Koffer m Koffer Koffern suitcase suitcases; Geige f Geigen Geigen violin violins; Kette f Ketten Ketten chain chains;
Ball m Bälle Bällen ball balls; Pferd n Pferde Pferden horse horses; Hund m Hunde Hunden dog dogs;
Katze f Katzen Katzen cat cats; Vogel m Vögel Vögeln bird birds; Blume f Blumen Blumen flower flowers;
Apfel m Äpfel Äpfeln apple apples; Kerze f Kerzen Kerzen candle candles; Spiegel m Spiegel Spiegeln mirror mirrors;
Seil n Seile Seilen rope ropes; Schachtel f Schachteln Schachteln box boxes; Hut m Hüte Hüten hat hats;
Ring m Ringe Ringen ring rings
""")
PLACES = nouns("""
Garten m Gärten Gärten garden gardens; Haus n Häuser Häusern house houses; Schule f Schulen Schulen school schools;
Stadt f Städte Städten town towns; Dorf n Dörfer Dörfern village villages; Kirche f Kirchen Kirchen church churches;
Markt m Märkte Märkten market markets; Wald m Wälder Wäldern forest forests; Küche f Küchen Küchen kitchen kitchens;
Bahnhof m Bahnhöfe Bahnhöfen railway_station railway_stations;
Krankenhaus n Krankenhäuser Krankenhäusern hospital hospitals; Hafen m Häfen Häfen harbour harbours;
Werkstatt f Werkstätten Werkstätten workshop workshops; Keller m Keller Kellern cellar cellars;
Hof m Höfe Höfen courtyard courtyards; Laden m Läden Läden shop shops; Turm m Türme Türmen tower towers;
Zimmer n Zimmer Zimmern room rooms; Straße f Straßen Straßen street streets; Park m Parks Parks park parks
""")
# one German word with two translations: a bench is in a garden, and people visit a bank
BENCH, BANK = nouns("Bank f Bänke Bänken bench benches; Bank f Banken Banken bank banks")
COMPOUND_HEADS = "Tür Fenster Tisch Stuhl Lampe Uhr Schlüssel Buch Karte Tasche Messer Kuchen Korb Flasche Bild Wagen"
COMPOUND_MODIFIERS = columns("""
Holz wooden; Garten garden; Küchen kitchen; Kinder children_'s; Winter winter; Silber silver; Apfel apple; Haus house;
Schul school; Wein wine; Reise travel; Papier paper; Keller cellar; Dorf village; Glas glass; Eisen iron
""")
_THING = {noun.singular: noun for noun in THINGS}
COMPOUNDS = [_THING[head].compound(*modifier) for modifier in COMPOUND_MODIFIERS for head in COMPOUND_HEADS.split()]
# stem without ending, and its English translations
ADJECTIVES = columns("""
alt old; neu new; klein small; groß big|large; rot red; jung young; schön beautiful; schwer heavy; leicht light;
dunkl dark; kalt cold; warm warm; müd tired; freundlich friendly; reich rich; arm poor; krank sick|ill; ruhig quiet;
schnell fast; schmutzig dirty; sauber clean; seltsam strange; wertvoll valuable; kaputt broken; weiß white;
schwarz black; blau blue; grün green; glücklich happy; berühmt famous; traurig sad; klug clever
""")
TRANSITIVE = verbs("""
finden findet finden fand fanden gefunden - t find finds found found
lesen liest lesen las lasen gelesen - r read reads read read
kaufen kauft kaufen kaufte kauften gekauft - t buy buys bought bought
verkaufen verkauft verkaufen verkaufte verkauften verkauft - t sell sells sold sold
suchen sucht suchen suchte suchten gesucht - a look_for looks_for looked_for looked_for
sehen sieht sehen sah sahen gesehen - a see sees saw seen
machen macht machen machte machten gemacht auf o open opens opened opened
machen macht machen machte machten gemacht zu o close closes closed closed
heben hebt heben hob hoben gehoben auf t pick_up picks_up picked_up picked_up
rufen ruft rufen rief riefen gerufen an p call calls called called
laden lädt laden lud luden geladen ein p invite invites invited invited
bringen bringt bringen brachte brachten gebracht mit t bring_along brings_along brought_along brought_along
werfen wirft werfen warf warfen geworfen weg t throw_away throws_away threw_away thrown_away
malen malt malen malte malten gemalt - a paint paints painted painted
verlieren verliert verlieren verlor verloren verloren - t lose loses lost lost
vergessen vergisst vergessen vergaß vergaßen vergessen - t forget forgets forgot forgotten
stehlen stiehlt stehlen stahl stahlen gestohlen - t steal steals stole stolen
reparieren repariert reparieren reparierte reparierten repariert - t repair repairs repaired repaired
besuchen besucht besuchen besuchte besuchten besucht - p visit visits visited visited
kennen kennt kennen kannte kannten gekannt - p know knows knew known
verstecken versteckt verstecken versteckte versteckten versteckt - t hide hides hid hidden
tragen trägt tragen trug trugen getragen - t carry carries carried carried
verlassen verlässt verlassen verließ verließen verlassen - l leave leaves left left
beschreiben beschreibt beschreiben beschrieb beschrieben beschrieben - a describe describes described described
holen holt holen holte holten geholt ab p pick_up picks_up picked_up picked_up
waschen wäscht waschen wusch wuschen gewaschen - t wash washes washed washed
""")
INTRANSITIVE = verbs("""
lachen lacht lachen lachte lachten gelacht - hat laugh laughs laughed laughed
schlafen schläft schlafen schlief schliefen geschlafen - hat sleep sleeps slept slept
arbeiten arbeitet arbeiten arbeitete arbeiteten gearbeitet - hat work works worked worked
stehen steht stehen stand standen gestanden auf ist get_up gets_up got_up got_up
kommen kommt kommen kam kamen gekommen an ist arrive arrives arrived arrived
schlafen schläft schlafen schlief schliefen geschlafen ein ist fall_asleep falls_asleep fell_asleep fallen_asleep
warten wartet warten wartete warteten gewartet - hat wait waits waited waited
singen singt singen sang sangen gesungen - hat sing sings sang sung
spielen spielt spielen spielte spielten gespielt - hat play plays played played
hören hört hören hörte hörten gehört auf hat stop stops stopped stopped
tanzen tanzt tanzen tanzte tanzten getanzt - hat dance dances danced danced
bleiben bleibt bleiben blieb blieben geblieben - ist stay stays stayed stayed
""")
# endings of the nouns, also of compounds, that are something to open (o) or to read (r)
OBJECT_ENDINGS = {
    "o": ("tür", "fenster", "schachtel", "flasche", "koffer", "tasche"),
    "r": ("buch", "brief", "zeitung", "karte"),
}
MODALS = [
    Modal("will", "wollen", "wants to", "want to"),
    Modal("kann", "können", "can", "can"),
    Modal("muss", "müssen", "has to", "have to"),
    Modal("darf", "dürfen", "may", "may"),
    Modal("soll", "sollen", "should", "should"),
]
BELIEFS = columns("glaubt believes; weiß knows; sagt says; hofft hopes; fürchtet fears; erzählt tells_us")
CONJUNCTIONS = columns("weil because; obwohl although; wenn when; während while; bevor before; nachdem after")
PREPOSITIONS = columns("in in; hinter behind; vor in_front_of; neben next_to")
# the third column is the tense that the adverbial needs
TIMES = columns("""
gestern yesterday past; heute today any; jeden_Tag every_day present; am_Morgen in_the_morning any;
am_Abend in_the_evening any; letzte_Woche last_week past; manchmal sometimes present; im_Winter in_winter any;
nach_dem_Essen after_the_meal any; vor_drei_Jahren three_years_ago past; immer always present; im_Sommer in_summer any;
am_Sonntag on_Sunday any; vor_zwei_Tagen two_days_ago past
""")
FREQUENCIES = ("sometimes", "always")
# by case and definiteness: the article and the adjective ending for masculine, feminine, neuter and plural
DECLENSION = {
    ("nom", True): columns("der e; die e; das e; die en"),
    ("acc", True): columns("den en; die e; das e; die en"),
    ("dat", True): columns("dem en; der en; dem en; den en"),
    ("nom", False): columns("ein er; eine e; ein es; - e"),
    ("acc", False): columns("einen en; eine e; ein es; - e"),
    ("dat", False): columns("einem en; einer en; einem en; - en"),
}


def article_and_ending(noun: Noun, case: str, definite: bool, plural: bool) -> list[str]:
    """Return the German article of the noun, and the ending of an adjective between article and noun."""
    column = 3 if plural else "mfn".index(noun.gender)
    return DECLENSION[case, definite][column]
