"""Experiments: a file, the stages that follow from it, and the processes that do them."""
