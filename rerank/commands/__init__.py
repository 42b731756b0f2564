"""The commands of `moses-rerank`, one module each: a help line, examples, its arguments, and what it does.

Nothing here is imported for long: each command imports what it needs when it runs.
"""
