"""Studies: an experiment over sizes of the training corpus, seeds and systems, and the tables of such papers."""
