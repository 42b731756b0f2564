"""Score the candidates of a source together: the decoder runs once for each different prefix.

Log-probabilities of tokens are added up along the paths of the prefix tree.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from features.feature import Reading, Sentence, Steps
from features.models.device import on_device
from features.models.folder import Model
from features.models.network.source import gather, put
from features.models.scoring.pairs import encode_target, fertility, mean_log
from features.models.scoring.parallel import read_layer_by_layer
from features.models.scoring.prefixes import Level, paths_of, prefix_tree
from features.models.scoring.values import SourceWords, Sums, of_tokens, select
from features.models.scoring.walk import Walk
from features.models.vocabulary import UNKNOWN
from features.progress import show_status


def score_tree(
    models: Sequence[Model], sentences: Sequence[Sentence], names: Sequence[str], attention: bool = False
) -> Reading:
    """Score all candidates of some sentences with forward models.

    All prefixes of one length are processed together, or all prefixes at once by models without recurrence. The softmax
    is normalized once for all continuations of a prefix, and the values of tokens are added up along the path. Several
    models score with the mean of their distributions, and attention is that of the first model. Results equal those of
    `score_one_by_one` up to the rounding of float32.
    """
    first, sources = models[0], [each.source for each in sentences]
    owners = [number for number, each in enumerate(sentences) for _ in each.hypotheses]  # (N,) index of the sentence
    targets = [encode_target(first, hypothesis) for each in sentences for hypothesis in each.hypotheses]
    levels = list(prefix_tree(owners, targets))
    steps = Steps(
        computed=sum(len(level.sources) for level in levels), separate=sum(len(target) + 1 for target in targets)
    )
    with torch.inference_mode():
        walks = [Walk(model, sources) for model in models]
        paths = paths_of(levels, len(owners))
        read = [
            _by_level(each, levels) if each.network.decoder.recurrent else read_layer_by_layer(each, levels, paths)
            for each in walks
        ]
        walk, owner = walks[0], on_device(owners, first.device)  # (N,)
        source = walk.source
        sums = _zero_sums(walk)
        done = 0
        ended = gather(sums, owner)  # N rows
        rows = np.empty((steps.computed if attention else 0, source.bias.shape[1]), dtype=np.float32)
        for level, steps_of_models in zip(levels, zip(*read, strict=True), strict=True):
            tokens, row = _tokens(walk, level, steps_of_models)
            nodes, edge_in = walk.on_device(level.nodes), walk.on_device(level.edge_in)
            sums = gather(gather(sums, edge_in), nodes).plus(tokens)  # edges before → N nodes → M edges
            put(ended, walk.on_device(level.ended), gather(sums, walk.on_device(level.ends)))
            if attention:
                rows[done : done + len(row)] = row.float().cpu().numpy()
            done += len(row)
            show_status(f"step {done:,} of {steps.computed:,}")
        expected = fertility(first, sources) if "fertility" in names else ()
        values = select(names, ended, gather(SourceWords(source.source_mask, expected), owner))  # (N, names)
    widths = [len(first.source.encode(source)) + 2 for source in sources]
    attended = [
        rows[path, : widths[index]] for index, path in zip(owners, paths if attention else (), strict=False)
    ]  # (J+1, I+2)
    return Reading(dict(zip(names, values.cpu().numpy().T, strict=True)), attended, steps)


def _tokens(walk: Walk, level: Level, read: Sequence[tuple[Tensor, Tensor]]) -> tuple[Sums, Tensor]:
    """Return the values of the single token on each edge, with the models averaged, and attention rows (N, S)."""
    log_probs, rows = zip(*read, strict=True)
    unknown = walk.on_device(level.next_words) == UNKNOWN
    return of_tokens(mean_log(log_probs), unknown, rows[0][walk.on_device(level.nodes)]), rows[0]  # (N, S) → (M, S)


def _by_level(walk: Walk, levels: Sequence[Level]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the log-probability (M,) of each edge of a level, and the attention rows (N, S) of its nodes."""
    for level in levels:
        states, log_probs, rows = [], [], []
        for part in level.split(walk.max_prefixes):
            step = walk.step(part.sources, part.words, part.parents)
            next_words = walk.on_device(part.next_words)
            log_probs.append(walk.network.softmax.chosen(step.outputs, part.nodes, next_words, step.lexical))
            states.append(step.state)
            rows.append(step.row)
        walk.advance(states)  # N rows
        yield torch.cat(log_probs), torch.cat(rows)  # (M,), (N, S)


def _zero_sums(walk: Walk) -> Sums:
    """Return sums over no tokens, one row per source."""
    zeros = torch.zeros_like(walk.source.bias)  # (sources, S)
    return of_tokens(zeros[:, 0], zeros[:, 0] > 0, zeros)
