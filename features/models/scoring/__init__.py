"""Scoring of given translations with trained models."""
