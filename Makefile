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
	rm -rf $(OUT) && mkdir $(OUT)
	$(BIN)/recbulc doctor
	$(BIN)/recbulc calibrate --out $(OUT)/clocks.json --plot $(OUT)/clocks.png
	$(BIN)/recbulc stability --for 10s --every 1s --csv $(OUT)/skew.csv --plot $(OUT)/skew.png -q
	@echo "demo ok: this machine's clocks are calibrated; model and pictures are in $(OUT)/"

test: setup lint
	$(BIN)/python -m pytest
	@echo "test ok"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE) $(wildcard tests/programs/runtime/*)

bench: setup
	$(BIN)/python benchmarks/stamp_cost.py
	$(BIN)/python benchmarks/calibration.py

clean:
	rm -rf .venv build dist $(OUT) *.egg-info src/*.egg-info tsc_probe/_probe.* recorders/*.so
