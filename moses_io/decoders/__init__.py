"""N-best lists of other decoders."""
