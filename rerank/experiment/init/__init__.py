"""The command `init`: it infers the role of each file from its content, and proposes an experiment file."""
