"""The size of the code stays within the budget of each package."""

import code_size


def test_each_package_is_within_its_budget_and_no_other_has_one():
    budget, sizes = code_size.read_budget(), code_size.packages()
    over = {
        package: f"{size.tokens} tokens, the budget is {budget.get(package, 0)}"
        for package, size in sizes.items()
        if size.tokens > budget.get(package, 0)
    }
    assert over == {}, "see tests/size_budget.yaml: what new code needs is paid for by code that goes"
    assert set(budget) <= set(sizes)


def test_comments_docstrings_and_line_breaks_do_not_count():
    bare = "def f(x):\n    return x\n"
    dressed = '"""A module."""\n\n\ndef f(\n    x\n):\n    """Return x."""\n    # why\n    return x\n'
    assert code_size.measure(bare).tokens == code_size.measure(dressed).tokens == 8
    assert code_size.measure("def f(a, b, c, d, *, e, g, h): ...").many_parameters == 1
