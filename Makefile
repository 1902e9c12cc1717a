# make quickstart   set up, sample the bundled problem, and compare every way to certify it
# make test         set up and run the tests
# make test-quick   set up and run the tests that take little time, for the inner loop: under a minute
# make check        set up and check format, lint and types
# make bench        set up and print the benchmarks as ratios
# make soak         set up and run an hour of kills, damaged files and simulations

PYTHON ?= python3
BIN := .venv/bin

.PHONY: quickstart test test-quick check bench soak

METHODS := sigma-0.25,sigma-0.5,sigma-1,multiscale,paper,fusion,cascade

quickstart: .venv/ready
	$(BIN)/dualrs panel recipes/quickstart.toml -o runs --inputs 0:100
	$(BIN)/dualrs compare runs/quickstart.ledger --methods $(METHODS)
	$(BIN)/dualrs figure accuracy runs/quickstart.ledger --methods $(METHODS) -o runs/quickstart.png

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

soak: .venv/ready
	$(BIN)/python -m soak

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@
