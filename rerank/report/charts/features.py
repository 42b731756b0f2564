"""Charts of features: what they are worth, and how much their weights count."""

from collections.abc import Sequence

from rerank.report.charts.drawing import (
    KINDS,
    WIDTH,
    bar,
    cut,
    dot,
    figure,
    label,
    legend,
    scale,
    upright_lines,
)
from rerank.tuning.ablation import BASE, Worth, against
from rerank.tuning.gain import Share

MOST = 24
"""Rows of a chart, at most."""

LEFT, RIGHT, TOP, LABEL = 142, WIDTH - 56, 8, 21
"""Of what is drawn; and letters of what stands beside it."""


def worth(table: Worth, metric: str) -> str:
    """Draw what each set of features reaches on each set of sentences, beside the first, Moses' own features."""
    on_dev = table.columns["dev"]
    rows = sorted(list(on_dev)[1:], key=lambda name: -abs(on_dev[name].score - on_dev[against(name)].score))[:MOST]
    names = [name for name in on_dev if name == BASE or name in rows]
    heads = {of: "dev, out of fold" if of == "dev" else of for of in table.columns}
    differences = {
        of: {name: column[name].score - column[BASE].score for name in names} for of, column in table.columns.items()
    }
    axis = scale([0.0, *(value for own in differences.values() for value in own.values())], LEFT, RIGHT, 5)
    height, thick = 6 + 13 * len(heads), 10
    bottom = TOP + height * len(names)
    parts = upright_lines(axis, TOP, bottom)
    for place, name in enumerate(names):
        top = TOP + height * place
        parts.append(label(LEFT - 8, round(top + height / 2 + 4, 1), cut(name, LABEL), "end"))
        for number, (kind, (of, own)) in enumerate(zip(KINDS, differences.items(), strict=False)):
            score, down = table.columns[of][name].score, top + 3 + 13 * number
            ends = sorted((axis(0), axis(own[name])))
            parts.append(bar(kind, ends[0], down, ends[1] - ends[0], thick, f"{name}, {heads[of]}: {score:.2f}"))
            parts.append(label(WIDTH - 4, down + 9, f"{score:.2f}", "end"))
    parts.append(label((LEFT + RIGHT) / 2, bottom + 30, f"{metric} above that of {BASE}", "middle"))
    parts += legend(list(heads.values()), 8, bottom + 52)
    fewer = f" (the {len(rows)} of {len(on_dev) - 1} that differ most)" if len(rows) < len(on_dev) - 1 else ""
    where = " and ".join(heads.values())
    caption = f"What {metric} sets of features reach{fewer} on {where}, as numbers and, as bars, beside {BASE}."
    return figure("What each feature is worth", caption, bottom + 62, parts)


def weights(shares: Sequence[Share]) -> str:
    """Draw how much the weight of each feature counts, and how much in each fold that was left out."""
    largest = sorted(shares, key=lambda each: -abs(each.value))[:MOST]
    rows = [each for each in shares if each in largest]
    axis = scale([0.0, *(100 * value for each in rows for value in (each.value, *each.folds))], LEFT, RIGHT, 5)
    height = 17
    bottom = TOP + height * len(rows)
    parts = upright_lines(axis, TOP, bottom)
    for place, each in enumerate(rows):
        down = TOP + height * (place + 0.5)
        parts.append(label(LEFT - 8, round(down + 4, 1), cut(each.name, LABEL), "end"))
        folds = [axis(100 * value) for value in each.folds]
        if folds:
            parts.append(f'<path class="two line" d="M{min(folds):.1f} {down:.1f}H{max(folds):.1f}"/>')
            parts += [f'<path class="two line" d="M{x:.1f} {down - 4:.1f}v8"/>' for x in folds]
        parts.append(dot("one", axis(100 * each.value), down, f"{each.name}: {100 * each.value:+.1f} %", 4))
        parts.append(label(WIDTH - 4, round(down + 4, 1), f"{100 * each.value:+.1f}", "end"))
    parts.append(label((LEFT + RIGHT) / 2, bottom + 30, "% of the dense weights", "middle"))
    left_out = len(rows[0].folds)
    spread = f", and as strokes the same of {left_out} tunings that each leave a fold of dev out" if left_out else ""
    fewer = f" (the {len(rows)} largest of {len(shares)})" if len(rows) < len(shares) else ""
    caption = (
        f"Dots: each weight times the spread of its feature among the candidates of a sentence of dev, in % of the sum "
        f"of these products without their signs{fewer}{spread}."
    )
    return figure("How much weights count", caption, bottom + 40, parts)
