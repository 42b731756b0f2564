"""Tuners: from arrays to weights."""
