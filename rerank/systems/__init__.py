"""Translations and word alignments by models, and lists with translations added to those of Moses."""
