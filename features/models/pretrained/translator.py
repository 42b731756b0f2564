"""Translations by a pretrained sequence-to-sequence model."""

from collections.abc import Callable, Iterator, Sequence

from features.feature import Resources, Sentence
from features.models.decoding.search import Beam
from features.models.decoding.translator import WINDOW, Translation, halves_of
from features.models.device import process_in_parts
from features.models.pretrained.form import Tokenizer, parse_form
from features.models.pretrained.languages import two_letters
from features.models.pretrained.options import parse_options
from features.models.pretrained.reader import NAME, Pretrained
from moses_io.files.errors import InputError, at

ROWS = {"cpu": 128, "cuda": 2048}
"""Maximum number of hypotheses in the beams of a batch."""


class PretrainedTranslator:
    """A pretrained model that translates, with translations in the form of a Moses list.

    The search is `generate` of transformers with the settings of the folder. The log-probability of a translation is
    the value of feature `hf` for its tokens.

    Attributes:
        signature: of the model, the search and the form.

    Args:
        argument: folder, languages and options, as of feature `hf`, with option `form`.
        beam: settings of the search.
        resources: device and precision.

    Raises:
        InputError: the folder is no sequence-to-sequence model, or an option is wrong, or there is no option `form`.
    """

    def __init__(self, argument: str, beam: Beam, resources: Resources) -> None:
        folder, options = parse_options(argument)
        if not options.form:
            raise InputError(f"{folder}: option 'form' is missing, the form of the translations")
        with at(f"{folder}: option "):
            form = parse_form(options.form)
        self._reader, self._beam = Pretrained((argument,), resources), beam
        if self._reader.causal:
            raise InputError(f"{folder}: a causal language model, which does not translate")
        self._tokenizer = Tokenizer(form, two_letters(options.language or self._reader.languages.target))
        normalized = "|normalize:yes" if beam.normalize else ""
        self.signature = f"{self._reader.signature}|beam:{beam.size}{normalized}|form:{form.text}"

    def translate(
        self, sources: Sequence[tuple[str, ...]], done: Callable[[int], object] = lambda count: None
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each source, without duplicates, best first: `best` of the beam, or fewer.

        Before their translations are yielded, `done` is called with the number of sources. The translation of an empty
        source is empty.
        """
        count = max(1, ROWS[self._reader.device.type] // self._beam.size)
        for start in range(0, len(sources), WINDOW):
            window = sources[start : start + WINDOW]
            translations: list[list[Translation]] = [[] for _ in window]
            order = sorted(range(len(window)), key=lambda index: len(window[index]))
            for first in range(0, len(order), count):
                indices = order[first : first + count]
                batch: Sequence[tuple[str, ...]] = [window[index] for index in indices]
                parts = process_in_parts(batch, self._generate, halves_of)
                scored = self._scored(batch, [each for part in parts for each in part])
                for index, found in zip(indices, scored, strict=True):
                    translations[index] = found
                done(len(indices))
            yield from translations

    def _generate(self, sources: Sequence[tuple[str, ...]]) -> list[list[tuple[str, ...]]]:
        """Return the tokens of translations of each source."""
        read = [each for each in sources if each]
        texts = iter(self._reader.generate(read, self._beam.size, self._beam.best) if read else [])
        return [[self._tokenizer(text) for text in next(texts)] if source else [()] for source in sources]

    def _scored(
        self, sources: Sequence[tuple[str, ...]], texts: Sequence[Sequence[tuple[str, ...]]]
    ) -> list[list[Translation]]:
        """Return the translations of each source, sorted by value, without those that are too long to be scored."""
        distinct = [tuple(filter(self._reader.fits, dict.fromkeys(part))) or ((),) for part in texts]
        sentences = [Sentence(index, source, distinct[index]) for index, source in enumerate(sources)]
        values = iter(self._reader.read(sentences, [NAME]).values[NAME].tolist())
        scored = []
        for part in distinct:
            found = []
            for text in part:
                log_prob = next(values)
                found.append(Translation(text, log_prob, self._beam.value(log_prob, len(text) + 1)))
            scored.append(sorted(found, key=lambda each: -each.value))
        return scored
