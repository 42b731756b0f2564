"""Translation with trained models: beam search, and replacement of unknown words."""
