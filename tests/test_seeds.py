"""`scripts/lab/seeds` reads the reports that this version writes."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parent.parent


def test_figures_of_a_report() -> None:
    loader = SourceFileLoader("seeds", str(ROOT / "scripts" / "lab" / "seeds"))
    spec = spec_from_loader("seeds", loader)
    assert spec
    script = module_from_spec(spec)
    loader.exec_module(script)
    report = ROOT / "tests" / "expected" / "experiment.report.json"
    experiment = SimpleNamespace(tests={"test": None}, report=lambda name, ending: report, features={})
    names = [name for name, _ in script.read_figures(experiment)]
    assert {"moses, test, BLEU", "r of confidence, dev", "r of the best predictor, test"} <= set(names)
