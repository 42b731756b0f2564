"""Rerankers: a folder with models and weights that can be moved, loaded and applied to new lists."""

MANIFEST = "reranker.json"
"""The file that marks a folder as a reranker."""
