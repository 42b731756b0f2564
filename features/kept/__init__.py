"""What was scored before: a cache between lists, and the journal of one that is not finished."""
