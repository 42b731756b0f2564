"""Tuning: from lists and references to an ini of weights, and how far it can be trusted."""
