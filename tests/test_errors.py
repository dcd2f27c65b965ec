"""Errors for users: which names are suggested in place of an unknown one."""

import pytest

from aucdist.errors import unknown


@pytest.mark.parametrize(
    ("name", "allowed", "suggested"),
    [
        ("lambda", ["lam", "label", "tol"], "lam"),
        ("seperator", ["separator", "decimal"], "separator"),
        ("label", ["lam", "tol"], None),
        ("time", ["name", "source"], None),
        ("target", ["table", "tol"], None),
        ("id", ["LIMIT_BAL", "ID"], "ID"),
        ("Default", ["PAY_0", "default.payment.next.month"], "default.payment.next.month"),
        ("a", ["age", "sex"], None),
    ],
)
def test_only_similar_names_are_suggested(name: str, allowed: list[str], suggested: str | None) -> None:
    hint = "" if suggested is None else f" Did you mean {suggested!r}?"
    assert str(unknown("key", name, allowed)) == f"unknown key {name!r}.{hint} Allowed: {', '.join(allowed)}"
