"""Models of COMET, which run in a separate Python environment."""
