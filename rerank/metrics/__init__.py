"""Metrics: sufficient statistics per sentence, and the score of their sum over a corpus."""
