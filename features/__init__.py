"""Features that map a source sentence and its n-best list to values, and the models that some of them use."""
