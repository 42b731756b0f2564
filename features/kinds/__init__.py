"""The kinds of features, grouped by topic. Their table is `features.table.FEATURES`."""
