"""The kinds of features, one idea a module; the table is `features.table.FEATURES`."""
