"""Reports and tables of results."""
