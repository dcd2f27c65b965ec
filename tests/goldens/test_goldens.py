"""What commands print and what fits give is what was kept; `results.py` says how to keep a change that is meant."""

import pytest

from goldens import results


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in results.FAST else pytest.mark.slow) for n in results.NAMES]
)
def test_results_are_those_that_were_kept(name: str, request: pytest.FixtureRequest) -> None:
    if name not in results.FAST:
        request.getfixturevalue("data_dir")
    assert results.compare(name) == []


def test_differences_are_found_and_rounding_is_none() -> None:
    old = {"a": {"digest": "x", "sum": 1.0}, "b": [1, 2.0, "t"]}
    near = {"a": {"digest": "y", "sum": 1.0 + 1e-9}, "b": [1, 2.0, "t"]}
    assert results.differences(old, near, exact=False) == []
    assert len(results.differences(old, near, exact=True)) == 2
    assert results.differences(old, {**near, "b": [1, 2.1, "t"]}, exact=False) == [
        "/b[1]: 2.0 was kept, 2.1 is given now"
    ]
    assert len(results.differences(old, {"a": old["a"]}, exact=False)) == 1


def test_names_cover_every_configuration_and_paper() -> None:
    assert {results.path_of(name).name for name in results.NAMES} == {path.name for path in results.HERE.glob("*.json")}
