"""A trained reranker as one thing: a folder that is written, moved, loaded and applied to new lists."""

MANIFEST = "reranker.json"
"""File that makes a folder a reranker."""
