"""The network: parts that the tables name, put together by `model`."""
