"""Reranking inside Moses' own pipeline: after `mert-moses.pl`, and as steps of EMS."""
