"""The mutants that once survived can still be made: their text is in the code, once."""

import mutants


def test_named_mutants_can_be_made():
    made = list(mutants.named())
    assert len(made) == len(mutants.NAMED)
    for _, name, text, tests in made:
        assert text != (mutants.ROOT / "aucdist" / name).read_text()
        compile(text, name, "exec")
        assert all((mutants.ROOT / test).is_file() for test in tests)


def test_a_sample_changes_what_it_names():
    for what, name, text, tests in mutants.sampled(20, seed=1):
        file, line, _ = what.split(":", 2)
        assert (file, int(line) > 0) == (name, True)
        compile(text, name, "exec")
        assert tests
