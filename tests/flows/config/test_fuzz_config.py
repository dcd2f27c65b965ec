"""Fuzzed configurations: YAML with some characters changed is read, or refused with one of our errors.

``HYPOTHESIS_PROFILE=explore`` tries more, and other, examples.
"""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from aucdist.errors import InputError
from flows.config.loading import explain, parse_yaml
from flows.cv.config import CvConfig
from flows.train.config import TrainConfig

TEXT = """name: clicks
data:
  source: {source: clicks.csv, format: csv, label: clicked, positive: "yes", drop: [id], dates: {seen: [year, days]}}
  test: {fraction: 0.2, seed: 0}
  scale: standard
model: &m {estimator: PairwiseHingeClassifier, solver: all-pairs, lam: 1e-3, tol: 1e-3}
grid: {lam: {first: 1e-4, last: 1.0, number: 5}}
folds: {number: 5}
cluster: {kind: local, workers: 2, memory_limit: 2GiB}
"""
WORDS = [
    "", " ", "\n", ":", "-", "{", "}", "[", "]", "&m ", "*m", "!!int ", "!!binary ", "!!python/name:os ", "<<: *m", "|", ">",
    "null", "~", "yes", "2024-02-30", "1e999", ".nan", ".inf", "9" * 400, "0x_", "1:2:3", "'", '"', "\\", "\t", "\x00", "\ufeff",
    "\U0001f600", "%TAG", "---", "...", "? ", "[" * 60,
]  # fmt: skip
EDITS = st.lists(
    st.tuples(st.integers(0, len(TEXT)), st.integers(0, 12), st.sampled_from(WORDS)), min_size=1, max_size=4
)


def refusal(text: str) -> str | None:
    """Return the message for a text that is refused, as the command line would show it."""
    try:
        content = parse_yaml(text, "the file")
    except InputError as e:
        return str(e)
    for model in (TrainConfig, CvConfig):
        try:
            model.model_validate(content)
        except ValidationError as e:
            return explain(e, model, "the file")
    return None


@given(EDITS)
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
def test_a_configuration(edits: list[tuple[int, int, str]]) -> None:
    text = TEXT
    for at, length, word in edits:
        text = text[:at] + word + text[at + length :]
    message = refusal(text)
    assert message is None or 0 < len(message) < 20_000
