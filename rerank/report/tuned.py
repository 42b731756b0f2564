"""How weights were found, and what they gain where they were tuned and where they were not, as lines of a report."""

from rerank.tuning.gain import Gain


def lines(gain: Gain) -> list[str]:
    """Return what was chosen from what, and the gain on dev beside that on sentences that were not tuned on."""
    name = gain.metric
    listed = [f"How weights are tuned: {name} {gain.where}; p against the mean"] if gain.tried else []
    width = max((len(way.name) for way in gain.tried), default=0)
    for way in gain.tried:
        chosen = "  chosen" if way.name == gain.chosen else ""
        listed.append(f"{way.name:<{width}}  {way.score:6.2f}  {way.p:.4f}{chosen}")
    unseen = ""
    if gain.old is not None and gain.new is not None:
        nested = ", nested" if gain.tried else ""
        unseen = f"; {gain.where}{nested} {gain.old:.2f} -> {gain.new:.2f} (p {gain.p:.4f})"
    return [*listed, f"{name} on dev, with weights tuned on it, {gain.before:.2f} -> {gain.after:.2f}{unseen}"]
