"""sacreBLEU's TER, with edits that are counted by compiled code: the same scores and signature in less time."""

from typing import Any

from sacrebleu.metrics.ter import TER

from rerank.metrics.edits import count_edits


class FastTER(TER):
    """TER of sacreBLEU; texts are tokenized by sacreBLEU."""

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        words, references = hypothesis.split(), ref_kwargs["ref_words"]
        edits = min(count_edits(words, reference) for reference in references)
        return [edits, sum(map(len, references)) / len(references)]
