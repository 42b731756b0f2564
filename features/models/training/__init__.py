"""Training, from files of parallel text to a model folder."""
