"""The first sentence pairs of a corpus, as files."""

from itertools import islice

from features.models.training.request import ParallelFiles
from moses_io.streams import numbered_lines, open_output


def cut(whole: ParallelFiles, size: int, first: ParallelFiles) -> None:
    """Write the first pairs of a corpus, byte for byte, and their links if there are any."""
    for path, output in zip(whole.files, first.files, strict=True):
        with open_output(output) as stream:
            stream.writelines(line for _, line in islice(numbered_lines(path), size))
