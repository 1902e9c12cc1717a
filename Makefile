# make quickstart   set up and certify the bundled problem
# make test         set up and run the tests
# make test-quick   set up and run the tests that take no time, for the inner loop
# make check        set up and check format, lint and types
# make bench        set up and print the benchmarks as ratios
# make soak         set up and run an hour of kills, damaged files and simulations

PYTHON ?= python3
BIN := .venv/bin

.PHONY: quickstart test test-quick check bench soak

quickstart: .venv/ready
	$(BIN)/dualrs certify recipes/quickstart.toml --inputs 0:100 --picture runs/quickstart.png

test: .venv/ready
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

test-quick: .venv/ready
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m "not slow" \
		--ignore tests/scale --ignore tests/faults --ignore tests/browser --ignore tests/pipeline

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python -m benchmarks

soak: .venv/ready
	$(BIN)/python -m soak

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@
