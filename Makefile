# make demo and make test need no earlier command; both set everything up first.
BIN := .venv/bin
NATIVE := $(wildcard tsc_probe/csrc/* recorders/csrc/* replay/csrc/*)
SOURCES := pyproject.toml setup.py tools/setup.sh tsc_probe/build_probe.py $(NATIVE)
OUT := demo-out

.PHONY: setup demo test lint bench clean

setup: .venv/ready

.venv/ready: $(SOURCES)
	./tools/setup.sh

demo: setup
	./tools/demo.sh $(OUT)

test: setup lint
	$(BIN)/python -m pytest -n 2 --dist loadfile
	@echo "test ok"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE) $(wildcard tests/programs/runtime/*)

bench: setup
	$(BIN)/python benchmarks/stamp_cost.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/solving.py
	$(BIN)/python benchmarks/chain.py

clean:
	rm -rf .venv build dist $(OUT) *.egg-info src/*.egg-info tsc_probe/_probe.* recorders/*.so
