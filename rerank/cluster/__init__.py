"""Work on the machines of a Ray cluster. Only this package imports ray."""

try:
    import ray as _ray  # noqa: F401
except ImportError:
    from moses_io.files.errors import InputError

    raise InputError("--ray needs the package ray: pip install 'moses-rerank[ray]'") from None
