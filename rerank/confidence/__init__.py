"""Confidence: how good the choice of a sentence is, and whether the change from Moses' choice helped."""
