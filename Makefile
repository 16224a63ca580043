# Two commands matter: `make demo` and `make test`. Both make the environment first.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# The tests start hundreds of programs: where bytecode may not be kept, each compiles our modules again (0.4 s).
unexport PYTHONDONTWRITEBYTECODE

.PHONY: env demo test golden check format bench gpu-test mutants clean

env: $(VENV)/.installed

# Rebuilt only when the list of packages changes, so `make env` is instant the second time.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: env
	$(BIN)/dragoman demo

# Two processes, then the tests that need the cores alone. tools/run_tests.py tries what fails once more, and lists it.
test: check
	$(BIN)/python tools/run_tests.py

# The wording that tests/golden and tests/explain/kept hold, as it is now. Read the diff.
golden: env
	$(BIN)/python -m tests.golden
	$(BIN)/python -m tests.explain.kept

check: env
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: env
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Four hours on an otherwise idle machine; each is a command of its own as well.
bench: env
	@test -d "$$DRAGOMAN_DATA" || { echo "DRAGOMAN_DATA must name a folder with multi30k and wmt16-vocab"; exit 2; }
	$(BIN)/python benchmarks/prepare.py
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/truth.py --repeat 3
	$(BIN)/python benchmarks/plan.py --only here --repeat 3
	$(BIN)/python benchmarks/speed.py --repeat 3 --folder build/speed
	$(BIN)/python benchmarks/parts.py configs/transformer-tiny.toml --data build/speed/tiny/data
	$(BIN)/python benchmarks/parts.py configs/transformer-base.toml --data build/speed/base/data --repeat 3 --steps 1
	$(BIN)/python benchmarks/decode.py
	$(BIN)/python benchmarks/serve.py

# Minutes on one or two GPUs, and a page to paste into an issue; benchmarks/gpu.md. Without a GPU: smaller, on the CPU.
gpu-test: env
	$(BIN)/python tools/gpu_test.py

# Not in continuous integration: an hour. What survives is listed in tools/mutants.txt.
mutants: env
	$(BIN)/python tools/mutants.py

clean:
	rm -rf $(VENV) build *.egg-info
