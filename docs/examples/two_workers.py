"""Two worker processes, the same bits.

Each chunk of a Dask array becomes a block on the worker that has it. The result depends on the chunks and not on the
workers: any number of workers gives the same result, to the last bit.
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
    for name, model, width in (("in this process", here, 5), ("on two workers", there, 1)):
        axes.semilogy(model.history_["passes"], model.history_["relative_gap"], label=name, linewidth=width)
    axes.set(xlabel="passes over the data", ylabel="relative gap")
    axes.legend()
    figure.savefig("two_workers.svg")
