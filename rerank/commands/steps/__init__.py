"""Commands that do one step of the chain: from parallel text, lists and weights to lists, weights and translations."""
