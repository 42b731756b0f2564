"""The linear model: candidates as arrays, weights by feature name, and selection of the best candidate."""
