"""Tuning: find weights from lists and references, and measure by cross-validation how well they generalize."""
