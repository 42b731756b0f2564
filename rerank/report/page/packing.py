"""Data in a page: JSON, compressed, in an element that the browser keeps and does not read."""

import base64
import json
import zlib


def packed(name: str, values: object) -> str:
    """Return an element with values by its id; its letters are those of base64, so no text of a list can end it."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    content = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'<script type="application/octet-stream" id="{name}">{content}</script>'
