"""What models attend to while they read the choices of systems."""

from collections.abc import Mapping

from features.progress import progress_bar
from moses_io.text import read_texts, tokens
from rerank.report.attention import open_attention


def attend(models: Mapping[str, str], source: str, systems: Mapping[str, str], device: str, output: str) -> None:
    """Align each sentence with what the systems chose, by each model alone, and keep the attention.

    Args:
        models: folders by the names that the report shows, all of models with attention.
        source: text.
        systems: translations by the name of the system, a line a sentence; one that is that of the first system is not
            read again.
        device: `auto`, `cpu` or `cuda`.
        output: file to write; see `open_attention`.

    Raises:
        InputError: see `Aligner` and `Aligner.align`.
    """
    from features.models.alignment import Aligner  # torch comes in here
    from rerank.systems.align import stretches

    aligners = [Aligner([folder], device) for folder in models.values()]
    sources, texts = read_texts(source, list(systems.values()))
    places, pairs = [], []
    for sentence, (words, *choices) in enumerate(zip(sources, *texts, strict=True)):
        for system, choice in zip(systems, choices, strict=True):
            if system == next(iter(systems)) or choice != choices[0]:
                places.append((sentence, system))
                pairs.append((tuple(tokens(words)), tuple(tokens(choice))))
    written = iter(places)
    with open_attention(output, list(models), list(systems)) as write, progress_bar("attend", len(pairs)) as bar:
        for stretch in stretches(pairs):
            by_model = [[aligned.attention for aligned in aligner.align(stretch)] for aligner in aligners]
            for matrices, place in zip(zip(*by_model, strict=True), written, strict=False):
                write(*place, matrices)
            bar.advance(len(stretch), "choices")
