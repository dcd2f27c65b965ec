"""scikit-learn's checks of one estimator with several solvers or settings."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

OF_THE_CLASS = {
    # parameters, names, tags, copies
    "check_do_not_raise_errors_in_init_or_set_params", "check_dont_overwrite_parameters", "check_estimator_cloneable",
    "check_estimator_repr", "check_estimator_sparse_tag", "check_estimator_tags_renamed", "check_get_params_invariance",
    "check_mixin_order", "check_no_attributes_set_in_init", "check_parameters_default_constructible",
    "check_positive_only_tag_during_fit", "check_set_params", "check_valid_tag_types",
    # the form of what several labels are answered with
    "check_classifiers_multilabel_output_format_decision_function", "check_classifiers_multilabel_output_format_predict",
    "check_classifiers_multilabel_output_format_predict_proba", "check_classifiers_multilabel_representation_invariance",
    # what is refused before a solver sees it
    "check_all_zero_sample_weights_error", "check_classifiers_regression_target", "check_complex_data",
    "check_estimators_empty_data_messages", "check_estimators_nan_inf", "check_estimators_unfitted", "check_fit1d",
    "check_fit2d_predict1d", "check_n_features_in_after_fitting", "check_requires_y_none", "check_sample_weights_shape",
    "check_supervised_y_2d", "check_supervised_y_no_nan",
}  # fmt: skip
"""Checks of code that all settings of an estimator share. The others are about data and fits, and run for each setting."""


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
    return model is first or getattr(check, "func", check).__name__ not in OF_THE_CLASS
