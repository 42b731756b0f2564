"""Commands that exchange files with Moses' own tuners."""
