"""Attentional encoder-decoders. Only this package imports torch."""
