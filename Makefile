# The commands of a newcomer and of CI. Everything set-up makes lies under .venv/ and .cache/.

PYTHON ?= python3
PYTEST = .venv/bin/python -m pytest
UV_COMPILE = .venv/bin/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
	--only-binary :all: --no-header --no-emit-index-url --no-annotate $(LOCK)

.DEFAULT_GOAL := help
.PHONY: help setup drive test test-slow lint lock clean clean-all

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## fetch and build all that is needed, once; offline afterwards
	@$(PYTHON) -m venus_edge.setup

drive: setup ## play the first drive in Monaco, live conversation and report
	@.venv/bin/venus drive simulators/scenarios/first_drive.yaml

test: setup ## fast tests and the drive
	@$(PYTEST) tests -m "not slow"

test-slow: setup ## soaks, builds and full evaluations
	@$(PYTEST) tests -m slow || { status=$$?; [ $$status -eq 5 ] && echo "test-slow: no slow test in this checkout, so there was nothing to run" || exit $$status; }

lint: setup ## who may import whom
	@.venv/bin/lint-imports

# A lock holds no address of a registry, so that every mirror serves it.
lock: ## bring the locks in line with the pins (network; LOCK=--upgrade for the newest allowed versions)
	@for name in bootstrap go; do \
	  $(UV_COMPILE) requirements/$$name.in -o requirements/$$name.txt || exit 1; \
	  sed -i "1i # Hashed lock of $$name.in, made by \`make lock\`." requirements/$$name.txt; \
	done
	@$(UV_COMPILE) pyproject.toml --extra cloud --extra skills --extra kuksa --extra sim --extra test -o requirements/lock.txt
	@sed -i "1i # Every package of \`make drive\` and \`make test\` with its hashes, made from pyproject.toml by \`make lock\`." requirements/lock.txt

clean: ## remove what runs and tests left
	@rm -rf out .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

clean-all: clean ## also remove the environment, models, server and map
	@rm -rf .venv .cache *.egg-info
