"""N-best lists: sources, scoring, appending features, verification and validation."""
