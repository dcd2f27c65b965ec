import warnings

import pytest

from flows.progress.console import LineObserver, warnings_to


def test_warnings_that_differ_in_numbers_are_one_note():
    lines = []
    with warnings_to(LineObserver(lines.append), ignored=(DeprecationWarning,)):
        for n in (90, 91, 8.5):
            warnings.warn(f"{n} rows are few", UserWarning, stacklevel=1)
        warnings.warn("90 rows are few", RuntimeWarning, stacklevel=1)
        warnings.warn("not shown", DeprecationWarning, stacklevel=1)
    assert [line.strip() for line in lines] == [
        "UserWarning: 90 rows are few (and 2 more like it)",
        "RuntimeWarning: 90 rows are few",
    ]


def test_other_settings_of_warnings_come_back():
    with warnings_to(LineObserver(print)):
        pass
    with pytest.raises(UserWarning, match="an error here"):  # as the tests' own settings have it
        warnings.warn("an error here", UserWarning, stacklevel=1)
