"""The linear model: candidates as arrays, weights by name, and the choice that they make."""
