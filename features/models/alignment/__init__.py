"""Forced alignment: what the attention of models says of the words of given translations."""
