"""Tuners: find weights for candidates that are given as arrays."""
