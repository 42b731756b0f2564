"""Integration with Moses: reranking after `mert-moses.pl`, and exchange of lists and weights with Moses' tuners."""
