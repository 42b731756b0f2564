"""Models of COMET, which run in a Python environment of their own."""
