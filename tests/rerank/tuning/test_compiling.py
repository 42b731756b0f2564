import numba
import pytest

from features import progress
from features.compilation_status import compilation_shown
from features.progress import progress_bar


@pytest.mark.usefixtures("progress")
def test_compilation_is_shown_in_the_progress_bar(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function and its callees are shown once, at the first call inside the block."""
    monkeypatch.setattr(progress, "LOG_INTERVAL", -1.0)
    inner = numba.njit(lambda x: x + 1)
    outer, other = numba.njit(lambda x: inner(x)), numba.njit(lambda x: inner(x))
    with progress_bar("tune", None):
        with compilation_shown():
            assert [outer(1), outer(2)] == [2, 3]
        other(1)
    lines = capfd.readouterr().err.splitlines()
    assert lines == ["tune: 0 (compiling)"] * 2 + ["tune: 0 (compiled)"]
