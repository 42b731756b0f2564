"""What each feature is worth, as a table: a row a set of features, a column a set of sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from moses_io.json_files import write_json
from moses_io.text import write_text
from rerank.tuning.ablation import BASE, EVERY, Reached, Worth, against, read_worth


def write_table(paths: Mapping[str, str], outputs: Sequence[str]) -> None:
    """Write the table of what `read_worth` reads, as text and as JSON."""
    worth = read_worth(paths)
    rows = [
        {"name": name, "against": against(name), "sets": {of: asdict(each[name]) for of, each in worth.columns.items()}}
        for name in worth.columns["dev"]
    ]
    as_text, as_json = outputs
    write_text(as_text, "".join(f"{line}\n" for line in lines(worth)))
    write_json(as_json, rows, indent=2)


def lines(worth: Worth) -> list[str]:
    """Return the lines of the table."""
    on_dev = worth.columns["dev"]
    heads = {of: f"{of:>8}" for of in worth.columns} | {"dev": f"{'dev, out of fold':>18}"}
    width = max(map(len, on_dev))
    table = [
        f"What each feature is worth ({worth.how}; p against {BASE}, below against all)",
        "  ".join([f"{'features':<{width}}", *(f"{head}  {'p':>6}" for head in heads.values())]),
    ]
    for name in on_dev:
        cells = [_cell(column[name], len(heads[of])) for of, column in worth.columns.items()]
        table.append("  ".join([f"{name:<{width}}", *cells]).rstrip())
    if on_dev[EVERY].score <= on_dev[BASE].score:
        table.append("warning: the new features do not help on sentences that were not tuned on")
    return table


def _cell(reached: Reached, width: int) -> str:
    p = "" if reached.p_value is None else f"{reached.p_value:.4f}"
    return f"{reached.score:>{width}.2f}  {p:>6}"
