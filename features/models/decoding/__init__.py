"""Models say translations of their own: search, and words for what they do not know."""
