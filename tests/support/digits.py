"""Rows of the digits in files, for the tests of several classes and of topics."""

import pandas as pd
from sklearn.datasets import dump_svmlight_file, load_digits


def write_digits(folder, rows, topics):
    """Write these rows of the digits as CSV with their digit, and as svmlight with its digit or the topics of that digit."""
    X, y = load_digits(return_X_y=True)
    X, y = X[rows] / 16.0, y[rows]
    pd.DataFrame(X, columns=[f"p{j}" for j in range(64)]).assign(digit=y).to_csv(folder / "digits.csv", index=False)
    dump_svmlight_file(X, y, str(folder / "digits.svm"), zero_based=False)
    lines = [line.split(" ", 1) for line in (folder / "digits.svm").read_text().splitlines()]
    (folder / "topics.svm").write_text("\n".join(f"{topics.get(digit, '')} {rest}" for digit, rest in lines) + "\n")
