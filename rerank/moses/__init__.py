"""Moses around reranking: after its tuning by `mert-moses.pl`, and lists and weights for its own tuners."""
