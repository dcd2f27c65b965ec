# `make train` and `make test` do all the set-up themselves; a second call finds it done.
# PYTHON names another interpreter: make train PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup train test test-s3 test-kubernetes lint bench clean

train: setup  ## train on the embedded digits and write a run folder below runs/
	$(BIN)/aucdist train digits

test: setup  ## all tests but the slow ones, then the small ones again as plain Python
	$(BIN)/pytest -q -n auto --dist loadfile -m "not slow"
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -n auto --dist loadfile -m nojit

test-s3: setup  ## the tests of S3 on a real server: AUCDIST_TEST_S3 is its endpoint, credentials as for any S3
	$(BIN)/pytest -q -m s3

test-kubernetes: setup  ## runs on a real Kubernetes API and S3, started by the labs (AUCDIST_LABS): ten minutes, the first time twenty
	tests/infra/on_labs.sh

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## measure on this machine, beside the peers
	$(BIN)/aucdist bench pairwise
	$(BIN)/aucdist bench engine

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "aucdist needs Python 3.11 or newer; '$(PYTHON)' is missing or older. Try: make PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

clean:  ## remove everything that was made here, run folders excepted
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
