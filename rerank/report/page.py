"""What a person reads of the results in a browser: one page without scripts, with every sentence that changed."""

import difflib
from collections.abc import Sequence
from html import escape

from moses_io.errors import printable
from moses_io.text import tokens
from rerank.report.changes import Change
from rerank.report.charts.drawing import STYLE
from rerank.report.evaluation import Evaluation
from rerank.report.terminal import cells, summary

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; } th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid #8885; }
th:first-child, td:first-child { text-align: left; } small { color: #777; }
section { border-top: 1px solid #8885; padding: 1em 0; } h2 { font-size: 1em; margin: 0; }
dl { display: grid; grid-template-columns: 6em 1fr; margin: .5em 0; } dt { color: #777; } dd { margin: 0; }
del { background: #f003; text-decoration: none; } ins { background: #0a04; text-decoration: none; }
.reason { display: grid; grid-template-columns: 12em 4em 1fr; font-size: .85em; align-items: center; }
.reason b { text-align: right; padding-right: 1em; font-weight: normal; } .reason i { height: .7em; display: block; }
.for { background: #4a4; } .against { background: #c55; }
main { display: flex; flex-direction: column; } #expected:checked ~ main section { order: var(--expected); }
#helped:checked ~ main section { order: var(--helped); }
"""

_ORDERS = """\
<input type="radio" name="order" id="listed" checked><label for="listed">the order above</label>
<input type="radio" name="order" id="expected"><label for="expected">lowest expected score first</label>
<input type="radio" name="order" id="helped"><label for="helped">least likely helped first</label>"""


def page(
    evaluation: Evaluation,
    changes: Sequence[Change],
    sentences: int,
    worth: Sequence[str] = (),
    charts: Sequence[str] = (),
) -> str:
    """Return the page: the table, what features and estimates are `worth`, the figures of `charts`, and each change."""
    table = "".join(_row("td" if number else "th", row) for number, row in enumerate(cells(evaluation)))
    small = [f"{name}: {text}" for name, text in evaluation.signatures.items()]
    small += evaluation.facts.lines() if evaluation.facts else []
    order = "Largest gain" if evaluation.signatures else "Clearest decision, by the difference of model scores,"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><title>moses-rerank</title>',
            f"<style>{_STYLE}{STYLE}</style></head><body>",
            "<h1>moses-rerank</h1>",
            f"<table>{table}</table><p><small>{'<br>'.join(map(_escaped, small))}</small></p>",
            f"<pre>{chr(10).join(map(_escaped, worth))}</pre>",
            '<div class="charts">',
            *charts,
            "</div>",
            f"<p>{summary(changes, sentences)}. {order} first; a bar is a feature's weighted part of the model "
            "score after minus before: green speaks for the change, red against it.</p>",
            _ORDERS if any(change.estimate for change in changes) else "",
            "<main>",
            *(_section(change) for change in changes),
            "</main></body></html>",
        ]
    )


def _escaped(text: str) -> str:
    """Return a line of text as HTML; what steers a terminal is nothing that a page may hold either."""
    return escape(printable(text))


def _row(tag: str, row: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_escaped(cell)}</{tag}>" for cell in row) + "</tr>"


def _section(change: Change) -> str:
    before, after = _differences(tokens(change.before), tokens(change.after))
    texts = {name: _escaped(text) for name, text in change.texts.items()}
    lines = {**texts, "before": before, "after": after}
    lines |= {"expected": change.expectation} if change.expectation else {}
    listed = "".join(f"<dt>{name}</dt><dd>{line}</dd>" for name, line in lines.items())
    largest = max((abs(part) for _, part in change.reasons), default=0.0) or 1.0
    reasons = "".join(
        f'<div class="reason"><span>{_escaped(name)}</span><b>{part:+.2f}</b>'
        f'<i class="{"for" if part > 0 else "against"}" style="width: {100 * abs(part) / largest:.0f}%"></i></div>'
        for name, part in change.reasons
    )
    return f"<section{_places(change)}><h2>{change.title}</h2><dl>{listed}</dl>{reasons}</section>"


def _places(change: Change) -> str:
    """Return where a section stands in the orders by its estimate."""
    if change.estimate is None:
        return ""
    helped = 1 if change.estimate.helped is None else change.estimate.helped
    return f' style="--expected: {round(100 * change.estimate.expected)}; --helped: {round(10000 * helped)}"'


def _differences(before: list[str], after: list[str]) -> tuple[str, str]:
    """Return both lines with the words marked that the other one does not have there."""
    old, new = [], []
    for kind, i, j, k, m in difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        left, right = _escaped(" ".join(before[i:j])), _escaped(" ".join(after[k:m]))
        old.append(left if kind == "equal" or not left else f"<del>{left}</del>")
        new.append(right if kind == "equal" or not right else f"<ins>{right}</ins>")
    return " ".join(part for part in old if part), " ".join(part for part in new if part)
