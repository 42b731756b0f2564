"""The network: its parts, and `model`, which assembles them."""
