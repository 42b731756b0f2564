"""Studies: an experiment repeated over corpus sizes, seeds and systems, with result tables for papers."""
