# Each goal sets itself up: nothing but Python 3.11+ with venv is expected.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs bench reproduce clean

# A stamp per set of extras, so that `make demo` does not wait for the test tools.
$(VENV)/installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

demo: $(VENV)/installed-cli
	$(BIN)/standout demo

test: $(VENV)/installed-test
	# Most matrices of the tests are small: threads would cost more than they give. Tests run on all cores instead, in
	# stretches of neighbours, so that what neighbours share is made about once.
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest --numprocesses auto --dist worksteal

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pages: built from scratch, so that every example runs and nothing old stays; then every link is followed, and every
# page opened in Chromium where there is one.
docs: $(VENV)/installed-docs
	rm -rf docs/_build docs/auto_examples docs/api/generated
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	STANDOUT_SITE=docs/_build/html $(BIN)/python -m pytest -q tests/test_docs_site.py
	@echo "Pages: docs/_build/html/index.html"

bench: $(VENV)/installed-cli
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/kernel.py
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/command_line.py

# The real datasets: the folder in STANDOUT_DATA, or the one beside this repository. A test holds docs/paper.md to the summary.
reproduce: $(VENV)/installed-experiments
	STANDOUT_DATA="$${STANDOUT_DATA:-../shared/data}" $(BIN)/python -m experiments all -o reproduction --summary docs/data/reproduction.json

clean:
	rm -rf docs/_build docs/auto_examples docs/api/generated
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench-venv
