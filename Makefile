# make quickstart   set up, sample the bundled problem, and compare every way to certify it
# make test         set up and run the tests
# make test-quick   set up and run the tests that take little time, for the inner loop: under a minute
# make check        set up and check format, lint and types
# make bench        set up and print the benchmarks as ratios
# make docs         set up and build the site into build/site, every link checked
# make soak         set up and run an hour of kills, damaged files and simulations

PYTHON ?= python3
BIN := .venv/bin

.PHONY: quickstart test test-quick check bench docs soak

quickstart: .venv/core
	$(BIN)/dualrs start

test: .venv/ready
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

test-quick: .venv/ready
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m "not slow"

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python -m benchmarks

docs: .venv/ready
	$(BIN)/python -m mkdocs build --strict

soak: .venv/ready
	$(BIN)/python -m soak

# What the quickstart needs, and the rest into the same environment.
.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[figures]"
	touch $@

.venv/ready: .venv/core
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@
