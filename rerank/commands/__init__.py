"""The commands of `moses-rerank`, one module each: help line, examples, arguments and action.

A module imports only light modules at its top, so that `--help` is fast. `run` imports the rest.
"""
