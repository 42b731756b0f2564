"""Charts of the page of a report: figures of inline SVG."""
