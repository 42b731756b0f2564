"""Attentional encoder-decoders. The only place that imports torch."""
