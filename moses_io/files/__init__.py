"""General file access: text, streams, compression, locks and JSON. Also the errors about user input."""
