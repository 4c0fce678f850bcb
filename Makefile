# `demo`, `lint`, `test`, `check` and `bench` set everything up themselves: a clone, a Python and a JDK are enough.

# Name an interpreter to use that one and no other; else the first fitting one on PATH is taken.
PYTHON ?=
ARGS ?=

BIN   := .venv/bin
STAMP := .venv/.set-up

NEEDS_PYTHON = weft needs Python 3.11, 3.12 or 3.13 with venv: install it with \`apt-get install python3.11 python3.11-venv\` \
(Debian, Ubuntu) or \`brew install python@3.11\` (macOS), or name one with \`make PYTHON=/path/to/python\`.
NEEDS_JDK = weft needs a JDK 17 or 21: install it with \`apt-get install openjdk-17-jdk-headless\` (Debian, Ubuntu) or \
\`brew install openjdk@17\` (macOS), and point JAVA_HOME at it if it is not the java on PATH.

.DEFAULT_GOAL := help
.PHONY: help setup demo kafka lint test test-slow soak kills check bench wheel jdk docs examples

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s  %s\n", $$1, $$2 }' Makefile

setup: jdk $(STAMP) ## create .venv with the locked packages

demo: jdk $(STAMP) ## run a hundred queries over a live stream for half a minute
	$(BIN)/weft demo $(ARGS)

kafka: jdk $(STAMP) ## start a real Kafka broker on 127.0.0.1:9092, and say how to weave from it
	$(BIN)/python -m tests.support.brokers

lint: $(STAMP) ## ruff, mypy, and the import rules
	$(BIN)/ruff check src bench tests tools
	$(BIN)/ruff format --check --quiet src bench tests tools
	$(BIN)/mypy
	$(BIN)/lint-imports

test: jdk $(STAMP) ## all tests but slow ones; ARGS="-k name" for some of them
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

test-slow: jdk $(STAMP) ## slow tests: kills, clusters, Kafka, Postgres, the page in a browser, notebooks, long laws
	$(BIN)/python -m pytest -m slow $(ARGS)

soak: jdk $(STAMP) ## what is drawn at random, for hours; WEFT_SEED=7 WEFT_QUERIES=50000 for other queries or more of them
	$(BIN)/python -m tests.support.exactly_spark_soak
	WEFT_SOAK=10 $(BIN)/python -m pytest tests/spark/queries tests/spark/execution tests/laws/test_pipeline.py -k "script or random_moments or pipeline" $(ARGS)

kills: jdk $(STAMP) ## one job, killed a hundred times at random moments: every answer is there, once
	WEFT_KILLS=100 $(BIN)/python -m pytest tests/spark/execution/test_recovery.py -k "random_moments_the_sink" --durations=1 $(ARGS)

check: lint test test-slow ## lint, then all tests

examples: jdk $(STAMP) ## run the notebooks of examples/ and keep what they show
	for story in examples/*.ipynb; do $(BIN)/python -m tools.notebooks $$story || exit 1; done

docs: $(STAMP) ## the documentation as a site, in build/site; its reference pages are written from the code
	$(BIN)/python -m tools.reference
	$(BIN)/mkdocs build --quiet

bench: jdk $(STAMP) ## list the benchmarks and run a quick one against plain Spark
	$(BIN)/weft bench --list
	$(BIN)/weft bench spark --quick

wheel: $(STAMP) ## build wheel and sdist into dist/, and run the wheel from a fresh environment
	rm -rf dist
	if [ -n "$${PIP_CERT:-}" ] && [ -z "$${SSL_CERT_FILE:-}" ]; then export SSL_CERT_FILE="$$PIP_CERT"; fi; \
	.uv/bin/uv build --quiet --out-dir dist && \
	.uv/bin/uv venv --quiet --clear --python $(BIN)/python dist/.venv && \
	.uv/bin/uv pip install --quiet --python dist/.venv/bin/python "$$(echo dist/*.whl)[serve]"
	dist/.venv/bin/weft --version
	cd dist && .venv/bin/python -m weft doctor
	cd dist && .venv/bin/python -c "from weft.service.assets import read_assets; assert 'index.html' in read_assets()"

# Spark takes JAVA_HOME before PATH, and so does this.
jdk:
	@version=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	case "$$version" in 17|21) ;; *) echo "$(NEEDS_JDK)" >&2; exit 1 ;; esac

# uv lives beside .venv, not in it: `uv sync` removes from .venv whatever the lock does not name. It reads SSL_CERT_FILE
# where pip reads PIP_CERT.
$(STAMP): uv.lock pyproject.toml bench/pyproject.toml
	@python=; \
	for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	  python=$$("$$candidate" -c 'import ensurepip, sys, venv; (3, 11) <= sys.version_info[:2] <= (3, 13) or sys.exit(1); print(sys.executable)' 2>/dev/null) \
	    && break; \
	done; \
	if [ -z "$$python" ]; then echo "$(NEEDS_PYTHON)" >&2; exit 1; fi; \
	set -e; \
	if ! .uv/bin/uv --version >/dev/null 2>&1; then \
	  echo "Installing uv into .uv"; \
	  "$$python" -m venv --clear .uv; \
	  echo '*' > .uv/.gitignore; \
	  .uv/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8,<1'; \
	fi; \
	if [ -n "$${PIP_CERT:-}" ] && [ -z "$${SSL_CERT_FILE:-}" ]; then export SSL_CERT_FILE="$$PIP_CERT"; fi; \
	echo "Installing the locked packages into .venv"; \
	UV_PROJECT_ENVIRONMENT=.venv UV_PYTHON_DOWNLOADS=never .uv/bin/uv sync --locked --python "$$python"; \
	touch $@
