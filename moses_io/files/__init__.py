"""Files of any content: text, streams, compression, locks and JSON; and errors of input."""
