"""Confidence: the expected quality of each choice, and the probability that it is better than Moses' choice.

Sentence-level confidence estimation (Blatz et al. 2004) is also called quality estimation.
"""
