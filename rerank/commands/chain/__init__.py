"""Commands that do all there is to do, by one name."""
