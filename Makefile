# The two commands of the README. Everything is installed into .venv, locked by uv.lock and Cargo.lock.
PYTHON ?= python3
UV_VERSION = 0.13.8
UV = .bootstrap/bin/uv
RUN = .venv/bin
PYTEST_OPTIONS =
# Python keeps what it compiled, whatever the environment says: services start in half the time.
unexport PYTHONDONTWRITEBYTECODE
# Slow tests of one module share servers and wheels: a worker takes a module at a time, the longest
# first (tests/conftest.py). Many of them wait for a window's instants: a third worker uses that time.
SLOW_OPTIONS = -n 3 --dist loadfile --no-loadscope-reorder
COMPARISON = circuits/rust/groth16-comparison/Cargo.toml

# Five gigabytes with its torch; its test runs where it is installed, and is skipped elsewhere.
NOT_HERE = --no-extra sentence-transformers

.PHONY: setup setup-servers setup-frameworks demo wheels test coverage test-slow nightly strangers lint lint-python lint-rust docs \
	rust-test rust-test-slow comparison-test audit soak simulate fuzz benchmarks clean

.bootstrap/bin/uv:
	$(PYTHON) -m venv .bootstrap
	.bootstrap/bin/pip install --quiet "uv==$(UV_VERSION)"

setup: .bootstrap/bin/uv
	$(UV) sync --locked --all-packages --all-extras $(NOT_HERE) --python $(PYTHON)

# For tests that start PostgreSQL, ask nginx about a file, or read the glosses of WordNet. Where they
# are not, and cannot be installed, those tests are skipped. RUNLEVEL: Debian starts no service of
# them. PostgreSQL with pgvector and Chroma's server come with `make setup`.
setup-servers:
	@{ command -v nginx && command -v openssl && ls /usr/lib/postgresql/*/bin/initdb /usr/share/wordnet/data.noun; } \
		>/dev/null 2>&1 || \
		{ apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qq \
			--yes --no-install-recommends postgresql nginx-light openssl wordnet-base >/dev/null; } || \
		echo "PostgreSQL, nginx, OpenSSL or WordNet cannot be installed: tests that need them are skipped"

# The libraries that applications are written with, in an environment of their own: tests run their
# programs before and behind the sidecar. Without it those tests are skipped. OGX's newest clients
# ask for Python 3.12: they are tried where there is one, and an older one everywhere.
NEWER_PYTHON ?= $(shell for each in $(PYTHON) python3.12 python3.13 python3.14 \
	"$$(pyenv prefix "$$(pyenv latest 3.12 2>/dev/null)" 2>/dev/null)/bin/python"; do "$$each" -c 'import sys; print(sys.executable) if \
	sys.version_info >= (3, 12) else sys.exit(1)' 2>/dev/null && break; done)
setup-frameworks: .bootstrap/bin/uv
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-frameworks
	$(UV) pip install --quiet --python .venv-frameworks/bin/python \
		--requirement tests/frameworks/requirements.txt
	@if [ -n "$(NEWER_PYTHON)" ]; then \
		$(UV) venv --quiet --allow-existing --python "$(NEWER_PYTHON)" .venv-ogx && \
		$(UV) pip install --quiet --python .venv-ogx/bin/python \
			--requirement tests/frameworks/requirements-ogx.txt; \
	else echo "no Python 3.12: OGX's newest clients are not tried"; fi

demo: setup
	$(RUN)/ragaudit demo

# One abi3 wheel of the core, for this platform and every Python from 3.11 on, and pure wheels of
# the rest. Who installs them needs no compiler. The core's is checked to be one that an index takes.
DIST = dist
wheels: .bootstrap/bin/uv
	PATH="$(CURDIR)/.bootstrap/bin:$$PATH" MATURIN_PEP517_ARGS="--compatibility pypi" \
		deployment/build-wheels.sh all "$(DIST)"

test: setup rust-test
	$(RUN)/pytest -n 2 $(PYTEST_OPTIONS)

# Of the last run with `--cov --cov-report=`: the least covered modules, and the total.
# Services that a test starts as processes of their own are not measured.
coverage:
	@$(RUN)/coverage report --sort=cover | sed -n '1,22p;/^TOTAL/p'

test-slow: setup
	$(RUN)/pytest -m "slow and not nightly" $(SLOW_OPTIONS)

# What .ci/run has no time for, some hours: installations from wheels and from a clean clone, every
# mutant of the core, services on PostgreSQL, floods and simulations at length, coverage, the
# comparison with Groth16, random statements, fuzzing, and programs of others. Needs what `strangers`
# and `fuzz` need.
nightly: setup setup-servers setup-frameworks
	$(RUN)/pytest -m nightly $(SLOW_OPTIONS) --durations=20
	$(RUN)/pytest -n 2 -q --cov --cov-report=
	$(MAKE) coverage rust-test-slow comparison-test strangers soak fuzz

# What we sign and publish, judged by programs of others: golang.org/x/mod, tessera's fsck, formats
# and witness of transparency-dev, securesystemslib, openssl. Needs Go and its module proxy; what is
# missing is skipped, and named.
strangers: setup
	$(RUN)/pytest -m strangers tests/strangers

# The bindings are tested from Python, the benchmarks have no tests: both are compiled by `lint`.
RUST_TESTED = --workspace --exclude ragaudit-core --exclude ragaudit-benches
rust-test:
	cd circuits/rust && cargo test --locked --release $(RUST_TESTED)

# A workspace of its own with dependencies of its own, which nothing that ships has.
comparison-test:
	cargo fmt --manifest-path $(COMPARISON) --check
	cargo clippy --locked --release --manifest-path $(COMPARISON) --all-targets -- -D warnings
	cargo test --locked --release --manifest-path $(COMPARISON)

rust-test-slow:
	cd circuits/rust && cargo test --locked --release $(RUST_TESTED) -- --ignored

# Known vulnerabilities of what is locked. Needs the network, PyPI's own advisories (not those of a
# mirror) and `cargo install cargo-deny`; not part of .ci/run, which must not change with the day.
PIP_AUDIT = pip-audit==2.10.1
audit: .bootstrap/bin/uv
	$(UV) export --quiet --frozen --all-packages --all-extras $(NOT_HERE) --no-emit-workspace \
		--output-file .bootstrap/requirements.txt
	$(UV) tool run $(PIP_AUDIT) --strict --disable-pip --require-hashes \
		--requirement .bootstrap/requirements.txt
	cd circuits/rust && cargo deny check

# Whole windows from seeds, with faults at every write and message (tests/support/simulated_world.py).
RUNS ?= 100
JOBS ?= 2
simulate:
	$(RUN)/python tests/support/simulated_plan.py --seed $(SEED) --runs $(RUNS) --jobs $(JOBS)

# Random statements, honest and false, each proven and judged.
STATEMENTS = 10000
SEED = 1
soak:
	cd circuits/rust && cargo run --locked --release --package ragaudit-adversary \
		--example soak -- $(STATEMENTS) $(SEED)

# Needs `rustup toolchain install nightly` and `cargo install cargo-fuzz`. The core has no unsafe
# code, so no sanitizer by default; SANITIZER=address watches its dependencies too.
FUZZ_TARGETS = encodings decode_selection decode_index decode_budget decode_charge statements \
	commitments sampler mutate_selection mutate_selection_all mutate_index mutate_budget mutate_charge
FUZZ_SECONDS = 60
SANITIZER = none
FUZZ = cd circuits/rust && cargo +nightly fuzz run --sanitizer $(SANITIZER)
fuzz:
	cd circuits/rust && cargo run --locked --release --package ragaudit-adversary \
		--example seeds -- fuzz
	$(foreach target,$(FUZZ_TARGETS),($(FUZZ) $(target) -- -max_total_time=$(FUZZ_SECONDS) \
		-dict=fuzz/encodings.dict -max_len=8192) &&) true

lint: lint-python lint-rust docs

lint-python: setup
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports

# The documents as a site in build/site. A dead link, or one to a heading that is gone, is an error.
# Pages that repeat what code and results say are made here, and not kept.
docs: setup
	$(RUN)/python tools/site_pages.py
	$(RUN)/zensical build --clean --strict

lint-rust: setup
	cd circuits/rust && cargo fmt --all --check
	cd circuits/rust && cargo clippy --locked --release --workspace --all-targets -- -D warnings

# Long: leave the machine alone meanwhile. What is stored for this commit is not measured again.
benchmarks: setup
	$(RUN)/ragaudit bench all --profile --groth16

clean:
	rm -rf .venv .venv-frameworks .venv-ogx .bootstrap dist circuits/rust/target circuits/rust/groth16-comparison/target
