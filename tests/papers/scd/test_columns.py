import numpy as np
import pytest
import scipy.sparse as sp

from aucdist.data.block import Block, as_csr
from aucdist.kernels.rows import CsrRows
from aucdist.papers.scd.primal import signed_columns


@pytest.mark.parametrize(
    ("form", "dtype"), [(np.asarray, np.float64), (sp.csr_matrix, np.float32), (sp.csr_array, np.float64)]
)
def test_columns_times_the_labels(form, dtype):
    r = np.random.default_rng(0)
    X = (r.normal(size=(20, 7)) * (r.random((20, 7)) < 0.6)).astype(dtype)
    y = np.where(r.random(20) < 0.4, 1, -1)
    data = form(X)
    for rows in (slice(None), slice(0, 0)):
        columns = signed_columns(Block.of(data[rows], y[rows]))
        dense = as_csr(columns).toarray() if isinstance(columns, CsrRows) else columns.values
        np.testing.assert_array_equal(dense, (X[rows] * y[rows, None]).T)
        assert dense.dtype == dtype
    np.testing.assert_array_equal(X, data.toarray() if sp.issparse(data) else data)  # what is given stays as it is
