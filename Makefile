# Each goal sets itself up: nothing but Python 3.11+ with venv is expected.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-long lint docs bench reproduce versions package clean

# A stamp per set of packages, so that `make demo` does not wait for the test tools. Tools of developers are dependency
# groups, which the pip of older Pythons does not know.
$(VENV)/pip: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

$(VENV)/installed-cli: $(VENV)/pip
	$(BIN)/python -m pip install --quiet --editable ".[cli]"
	touch $@

$(VENV)/installed-%: $(VENV)/pip
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group $*
	touch $@

demo: $(VENV)/installed-cli
	$(BIN)/standout demo
	@echo "The command is $(BIN)/standout. The tests (make test) take about five minutes on two cores."

test: $(VENV)/installed-test
	# Most matrices of the tests are small: threads would cost more than they give. Tests run on all cores instead, in
	# stretches of neighbours, so that what neighbours share is made about once.
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest --numprocesses auto --dist worksteal

# Memory, levels of tests by simulation, many kills: everything with the mark "long".
test-long: $(VENV)/installed-test
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -m long --numprocesses auto --dist worksteal

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The oldest versions that pyproject.toml allows, and the newest that were tried: an environment each, and the tests of
# what meets other packages. Takes minutes: continuous integration runs it once a week.
VERSION_TESTS := tests/test_contract.py tests/test_sources.py tests/test_images.py tests/test_io.py tests/test_mne.py tests/test_notebook.py tests/test_routes.py tests/test_search.py tests/test_tl.py

versions: versions-oldest versions-newest

versions-%: .ci/%.txt pyproject.toml
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-$*/bin/python -m pip install --quiet --constraint .ci/$*.txt --editable ".[all]" --group test
	# Warnings of other packages about each other's versions are no errors here. Older versions of scikit-learn ask for SciPy's switch.
	SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 .venv-$*/bin/python -m pytest -W default --numprocesses auto --dist worksteal $(VERSION_TESTS)

# What would be uploaded: built, checked, and installed into empty environments, from the wheel and from the source.
package: $(VENV)/installed-release
	rm -rf dist build/wheel build/sdist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	for kind in wheel:whl sdist:tar.gz; do \
	  $(PYTHON) -m venv build/$${kind%%:*} && build/$${kind%%:*}/bin/python -m pip install --quiet dist/*.$${kind##*:} \
	  && build/$${kind%%:*}/bin/python .ci/installed.py || exit 1; \
	done

# The pages: built from scratch, so that every example runs and nothing old stays; then every link is followed, and every
# page opened in Chromium where there is one.
docs: $(VENV)/installed-docs
	rm -rf docs/_build docs/auto_examples docs/api/generated
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	STANDOUT_SITE=docs/_build/html $(BIN)/python -m pytest -q tests/test_docs_site.py
	@echo "Pages: docs/_build/html/index.html"

bench: $(VENV)/installed-cli
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/command_line.py

# The real datasets: the folder in STANDOUT_DATA, or the one beside this repository. docs/data/evidence.py writes its table into docs/evidence.md.
reproduce: $(VENV)/installed-experiments
	STANDOUT_DATA="$${STANDOUT_DATA:-../shared/data}" $(BIN)/python -m experiments all -o reproduction --summary docs/data/reproduction.json

clean:
	rm -rf docs/_build docs/auto_examples docs/api/generated
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench-venv .venv-oldest .venv-newest
