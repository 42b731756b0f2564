"""Translations, word alignments and attention of models, and n-best lists extended by the models' translations."""
