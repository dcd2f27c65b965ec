"""Two worker processes, the same bits.

Each chunk of a Dask array becomes a block on the worker that has it. The result depends on the chunks. Any number
of workers gives the same result, to the last bit.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from aucdist import PairwiseHingeClassifier
from aucdist.engine.dask import local_client

# Worker processes import this file, so the code that starts them must not run again.
if __name__ == "__main__":
    X, digit = load_digits(return_X_y=True)
    chunks = da.from_array(X / 16, chunks=(500, 64)), da.from_array(digit == 8, chunks=500)

    here = PairwiseHingeClassifier(lam=1e-3).fit(*chunks)
    with local_client(2):
        there = PairwiseHingeClassifier(lam=1e-3).fit(*chunks)

    print("in this process", here.certificate_.relative_gap)
    print("on two workers ", there.certificate_.relative_gap)
    print("same bits:", np.array_equal(here.coef_, there.coef_))

    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    here.plot_history(ax=axes).line_.set(label="in this process", linewidth=5, alpha=0.3)
    there.plot_history(ax=axes).line_.set(label="on two workers")
    axes.legend(handles=[line for line in axes.lines if "tol" not in line.get_label()])
    figure.savefig("two_workers.svg")
