"""Reranking after Moses' own tuning, `mert-moses.pl`."""
