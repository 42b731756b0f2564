"""Metrics: statistics that add, and the score of their sum."""
