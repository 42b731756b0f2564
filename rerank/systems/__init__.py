"""Translations of our own models beside Moses' list."""
