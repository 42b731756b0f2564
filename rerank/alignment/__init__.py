"""Forced alignment of files of parallel text."""
