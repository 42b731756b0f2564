"""Commands that only look: at lists, and at what can be named."""
