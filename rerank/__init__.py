"""The linear model over features: candidates as arrays, tuning, selection, evaluation, the command line."""

from importlib.metadata import version

__version__ = version("moses-rerank")
