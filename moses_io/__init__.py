"""Moses' text formats: n-best lists, weights, alignments, parallel text. Bytes that cannot be parsed are kept."""
