"""scikit-learn's checks of one estimator with several solvers or settings."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

OF_A_FIT = {
    "check_classifiers_one_label_sample_weights", "check_classifiers_train", "check_estimator_sparse_array",
    "check_fit2d_1feature", "check_fit2d_1sample", "check_fit_idempotent", "check_methods_sample_order_invariance",
    "check_methods_subset_invariance", "check_non_transformer_estimators_n_iter", "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data",
    "check_transformer_general",
}  # fmt: skip
"""Checks that depend on what a fit finds. Those of names, tags, wrong input, copies, pickles and types of numbers pass through
code that all settings of an estimator share."""


def checks_of(first: Any, *others: Any, **options: Any) -> pytest.MarkDecorator:
    """Return the mark that runs all checks of the first estimator, and those that depend on the fit for the others.

    Parameters
    ----------
    first : estimator or None
        None, if all checks run for another estimator of the same class elsewhere.
    *others : estimators
        Of the same class, and with the same way of rows to the solver.
    **options : Any
        As `sklearn.utils.estimator_checks.parametrize_with_checks` takes them.
    """
    mark = parametrize_with_checks([model for model in (first, *others) if model is not None], **options)
    names, cases = mark.args
    return pytest.mark.parametrize(names, [case for case in cases if _is_run(case, first)], **mark.kwargs)


def _is_run(case: Any, first: Any) -> bool:
    model, check = getattr(case, "values", case)  # a case that may fail is a parameter of pytest
    options = getattr(check, "keywords", {})  # of a check that is run for several types of numbers
    return model is first or (getattr(check, "func", check).__name__ in OF_A_FIT and not options)
