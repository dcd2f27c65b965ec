import pytest

from aucdist.data.formats.svmlight import parse_svmlight
from aucdist.errors import InputError


@pytest.mark.parametrize("label", ["1_0", "0x1", "1e", "--1"])
def test_a_label_that_only_python_would_read_is_refused(label):
    with pytest.raises(InputError, match="is not a number"):
        parse_svmlight(f"1 1:2\n{label} 1:3\n".encode(), "f.svm", n_features=None, zero_based=False)
