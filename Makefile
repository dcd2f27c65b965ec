# `make train` and `make test` do all the set-up themselves; a second call finds it done.
# PYTHON names another interpreter: make train PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SECONDS ?= 600
COUNT ?= 50
SUITES ?= pairwise hinge link cv data engine workers
STAMP := $(VENV)/.installed
PIP := -m pip --quiet --no-input --disable-pip-version-check install
DOCS := .venv-docs
AUDIT := build/audit

# Many containers keep Python from writing bytecode. Each start would then compile all that it imports, which takes nine seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup train test test-s3 test-kubernetes faults soak hunt mutants defaults lint bench benchmarks measure docs architecture audit clean

train: setup  ## train on the embedded digits and write a run folder below runs/
	$(BIN)/aucdist train digits

# The plain ones run in one process beside the others, which wait for commands, servers and workers a third of their time.
test: setup  ## all tests but the slow ones, and the small ones also as plain Python
	@mkdir -p build
	@NUMBA_DISABLE_JIT=1 nice $(BIN)/pytest -q -rs -m nojit $$(grep -rl nojit --include='test_*.py' tests) > build/nojit.log 2>&1 & \
	plain=$$!; status=0; set -x; \
	$(BIN)/pytest -q -rs -n auto --dist loadfile --no-loadscope-reorder -m "not slow" || status=1; \
	wait $$plain || status=1; cat build/nojit.log; exit $$status

test-s3: setup  ## the tests of S3 on a real server: AUCDIST_TEST_S3 is its endpoint, credentials as for any S3
	$(BIN)/pytest -q -rs -m s3 $$(grep -rl 'mark\.s3' --include='test_*.py' tests)

test-kubernetes:  ## runs on a real Kubernetes API and S3, started by the labs (AUCDIST_LABS): ten minutes, the first time twenty
	$(MAKE) setup VENV=build/kubernetes
	tests/infra/on_labs.sh build/kubernetes

faults: setup  ## break things in mid-fit, five times each: half an hour; the link and the full disk need root, S3 its lab
	PYTHONPATH=tests $(BIN)/python tests/infra/faults.py

soak: setup  ## 200 runs on one server and one cluster: does anything grow? ten minutes
	$(BIN)/python tests/infra/soak.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

hunt: setup  ## random problems, every estimator, truth in extended precision: is any certificate false? SECONDS=600
	PYTHONPATH=tests $(BIN)/python -W ignore tests/hunt.py --seconds $(SECONDS)

mutants: setup  ## small faults put into the code one at a time: which do no tests notice? COUNT=50 of a sample, hours
	$(BIN)/python tests/mutants.py --count $(COUNT)

defaults: setup  ## does each estimator converge with its defaults? a row for each on 100 data sets; ten minutes
	$(BIN)/python tests/defaults.py --output docs/benchmarks/defaults.csv

bench: setup  ## measure on this machine
	PYTHONPATH=tests $(BIN)/python -m benchmarks pairwise
	PYTHONPATH=tests $(BIN)/python -m benchmarks engine

benchmarks: setup  ## the tables and pictures of the page "Benchmarks", made again from the files in docs/benchmarks
	$(BIN)/python docs/since_release.py
	$(BIN)/python docs/benchmark_tables.py
	$(BIN)/python docs/benchmark_pictures.py
	$(BIN)/python docs/benchmark_sentences.py  # what a page should say

measure: setup  ## measure these tables on one commit, and say which are left: half an hour of an idle machine. SUITES=peers and others take hours
	$(BIN)/python tests/benchmarks/frozen.py $(SUITES)
	$(MAKE) benchmarks

docs: setup $(DOCS)/.installed  ## the documentation: build/docs/index.html; a warning ends it
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --config-file docs/mkdocs.yml

$(DOCS)/.installed: docs/requirements.lock | setup
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(BIN)/uv pip install --quiet --python $(DOCS)/bin/python --require-hashes -r docs/requirements.lock || \
	  $(DOCS)/bin/python $(PIP) --no-compile --require-hashes -r docs/requirements.lock
	touch $@

architecture: setup  ## the imports between folders: their layers, and build/architecture.svg; a circle ends it
	$(BIN)/python docs/import_graph.py --svg build/architecture.svg

audit: $(AUDIT)/.installed  ## known faults of the packages in the lock files, as a service on the internet knows them
	@for lock in requirements.lock infra/docker/requirements.lock; do \
	  $(AUDIT)/bin/pip-audit --strict --progress-spinner off --disable-pip --require-hashes -r $$lock || { \
	    echo "audit: $$lock has packages with known faults, or what is said above could not be looked up: then nothing is known"; exit 1; }; \
	done

$(AUDIT)/.installed:
	test -x $(AUDIT)/bin/python || $(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	touch $@

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "aucdist needs Python 3.11 or newer; '$(PYTHON)' is missing or older. Try: make PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p build
	@awk '/^[^ ]/ {uv = /^uv=/} uv' requirements.lock > build/lock-of-uv.txt
	@# uv needs a tenth of pip's time, but does not read pip's settings. Where it cannot install, pip does.
	$(BIN)/python $(PIP) --require-hashes --only-binary uv -r build/lock-of-uv.txt && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements.lock || \
	  $(BIN)/python $(PIP) --no-compile --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip check --disable-pip-version-check  # nothing that the lock lacks
	$(BIN)/python $(PIP) --no-deps --no-build-isolation -e .
	touch $@

clean:  ## remove everything that was made here, run folders excepted
	rm -rf $(VENV) $(DOCS) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
