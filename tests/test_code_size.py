"""The size of the code stays within the budget of each room."""

from functools import cache

import code_size

rooms = cache(code_size.rooms)


def test_each_room_is_within_its_budget():
    budget, sizes = code_size.read_budget(), rooms()
    over = {
        room: f"{size.tokens} tokens, the budget is {budget.get(room, 0)}"
        for room, size in sizes.items()
        if size.tokens > budget.get(room, 0)
    }
    assert over == {}, "see tests/size_budget.yaml: what new code needs is paid for by code that goes"


def test_budgets_of_rooms_that_are_gone_go_with_them():
    assert set(code_size.read_budget()) <= set(rooms())


def test_comments_docstrings_and_line_breaks_do_not_count():
    bare = "def f(x):\n    return x\n"
    dressed = '"""A module."""\n\n\ndef f(\n    x\n):\n    """Return x."""\n    # why\n    return x\n'
    assert code_size.measure(bare).tokens == code_size.measure(dressed).tokens == 8
    assert code_size.measure("def f(a, b, c, d, *, e, g, h): ...").many_parameters == 1
