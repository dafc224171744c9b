# Every target makes and uses the project's own virtual environment, .venv; all it needs is Python
# 3.11 or newer and a package index. PYTHON=python3.13 make test uses another interpreter,
# VENV=.venv-docs make docs another environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-oldest test-newest test-deep lint format coverage fuzz mutants bench reproduce-quick reproduce docs build reproducible clean

help:  ## Show what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("skpll needs Python 3.11 or newer, not " + sys.version.split()[0] + "; set PYTHON=") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of extras, renewed when the dependencies change.
$(VENV)/.has-%: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

demo: $(VENV)/.has-cli  ## Learn from ambiguous labels of handwritten digits
	$(BIN)/skpll demo

test: $(VENV)/.has-dev  ## Run the tests
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"

# Environments of their own: the oldest versions that pyproject.toml claims, and the newest there are.
.venv-%/.ready: .ci/oldest.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check --prefer-binary $(PIP_$*) --editable ".[test]"
	@touch $@

PIP_oldest := --constraint .ci/oldest.txt
PIP_newest := --upgrade --upgrade-strategy eager

# Torch is in an environment of its own. A build for the processor alone is a tenth of the size, but not
# every index has one. scikit-learn 1.6 needs array-api-compat for tensors; later versions bring it.
DEEP ?= .venv-deep
TORCH ?= torch==2.13.0+cpu

$(DEEP)/.ready: pyproject.toml
	$(PYTHON) -m venv --clear $(DEEP)
	$(DEEP)/bin/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" || { \
	  echo "the index has no $(TORCH): installing torch as it is, perhaps with gigabytes for GPUs"; \
	  $(DEEP)/bin/python -m pip install --quiet --disable-pip-version-check torch; }
	$(DEEP)/bin/python -m pip install --quiet --disable-pip-version-check pytest pytest-xdist hypothesis array-api-compat --editable ".[deep,cli,tables]"
	@touch $@

# What depends on other people's versions; TESTS=tests runs everything.
TESTS ?= tests/test_estimator_checks.py tests/test_contract.py tests/test_candidates.py tests/test_sklearn_tools.py tests/model_selection

test-oldest: .venv-oldest/.ready  ## Run the tests that other versions can break with the oldest versions
	.venv-oldest/bin/python -m pytest -n auto --dist loadgroup -m "not slow" $(TESTS)

test-newest: .venv-newest/.ready  ## The same with the newest versions
	.venv-newest/bin/python -m pytest -n auto --dist loadgroup -m "not slow" $(TESTS)

test-deep: $(DEEP)/.ready  ## Run the tests of deep networks and tensors, with torch in an environment of its own
	$(DEEP)/bin/python -c "import torch, skorch"
	OMP_NUM_THREADS=1 $(DEEP)/bin/python -m pytest -n auto --dist loadgroup tests/deep tests/test_tensors.py tests/large/test_tensors.py

coverage: $(VENV)/.has-dev  ## Run the tests and report the lines they miss
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow" --cov --cov-report=term

fuzz: $(VENV)/.has-dev  ## Fit every method to made-up hard problems (PROBLEMS=2000)
	$(BIN)/python -m tests.fuzz --problems $(or $(PROBLEMS),2000)

mutants: $(VENV)/.has-dev  ## Change the source at random places, and list the changes no test notices (COUNT=300)
	$(BIN)/python -m tools.mutants --count $(or $(COUNT),300)

lint: $(VENV)/.has-dev  ## Check style, types and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

format: $(VENV)/.has-dev  ## Put the style right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.has-bench  ## Measure the solvers against their rivals (QUICK=1 for a short run)
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

reproduce-quick: $(VENV)/.has-all  ## Run small versions of the paper's experiments, in minutes
	$(BIN)/skpll reproduce all --quick --store results-quick.db --out report-quick --results report-quick/RESULTS.md

reproduce: $(VENV)/.has-all  ## Run the paper's experiments, in hours; the same command goes on after a stop
	$(BIN)/skpll reproduce all --store results.db --out report --results RESULTS.md

docs: $(VENV)/.has-docs  ## Build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

build: $(VENV)/.has-dev  ## Build the source archive and the wheel into dist, and check both
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

reproducible: build  ## Build again from the unpacked source archive, and compare byte by byte
	rm -rf build/again
	mkdir -p build/again
	tar -xzf dist/*.tar.gz -C build/again --strip-components 1
	$(BIN)/python -m build --no-isolation --outdir build/again/dist build/again
	cd dist && for file in *; do cmp "$$file" "../build/again/dist/$$file" || exit 1; done

clean:  ## Remove what the other targets made
	rm -rf $(VENV) .venv-* build dist docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .coverage
