"""What a person reads of the results in a browser: one page with all sentences, which needs no network."""
