"""Moses' text formats: n-best lists, weights, parallel text. Bytes that are not understood are kept as they are."""
