"""N-best lists: source sentences, scoring, appending features, verification and validation."""
