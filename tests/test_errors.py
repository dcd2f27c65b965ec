"""Errors for users: which names are suggested in place of an unknown one."""

import pytest

from aucdist.errors import InputError, counted, unknown
from aucdist.metrics.named import NAMED_METRICS, OTHER_NAMES, find_metric, search_options


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


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("pr_auc", "average_precision"), ("AUPRC", "average_precision"), ("average-precision", "average_precision"),
        ("ap", "average_precision"), ("roc_auc", "auc"), ("auroc", "auc"), ("logloss", "log_loss"), ("cross_entropy", "log_loss"),
        ("neg_log_loss", "log_loss"), ("brier", "brier_loss"),
    ],
)  # fmt: skip
def test_what_others_call_a_metric_leads_to_ours(name: str, ours: str) -> None:
    assert not set(OTHER_NAMES) & set(NAMED_METRICS)
    assert set(OTHER_NAMES.values()) <= set(NAMED_METRICS)
    with pytest.raises(InputError) as error:
        find_metric(name)
    assert f"Did you mean {ours!r}? Allowed: auc, average_precision, " in str(error.value)
    assert "more" not in str(error.value), "a list of twenty names or fewer is complete"
    if ours == "average_precision":
        with pytest.raises(InputError, match="Did you mean 'average_precision'"):
            search_options({"map": "auto", "metric": name})


def test_a_list_of_more_than_twenty_names_is_cut() -> None:
    names = [f"{letter}1" for letter in "abcdefghijklmnopqrstuvwxyz"]
    assert str(unknown("key", "zzz", names[:20])).endswith(", s1, t1")
    assert str(unknown("key", "zzz", names)).endswith(", s1, t1, and 6 more")


def test_a_noun_is_in_the_plural_unless_there_is_one() -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 1200)] == ["0 rows", "1 row", "2 rows", "1,200 rows"]
    assert [counted(n, "class") for n in (1, 2)] == ["1 class", "2 classes"]
