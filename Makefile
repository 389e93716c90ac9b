# Everything begins here: `make help`.
SHELL := bash
.DEFAULT_GOAL := help

# The cluster of `make up` lives here.
BED := .bed
CRATES := api planner engine operator cli bed e2e
# The crates with unit tests, always all of them: another choice has other features, and builds the dependencies anew.
UNITS := --workspace --exclude e2e
# The tests that keep generated files current, and write them with NACRE_GEN.
GENERATED := $(UNITS) --test crds --test manifests --test operator_manifest
# The same for what is made of the command line: docs/cli.md and the manual pages.
REFERENCE := $(UNITS) --bin kubectl-nacre reference

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: tools ## Tell the tenant's story on a real cluster, with real output
	@echo "== Building nacre"
	@cargo build --release --package operator --package e2e
	@target/release/demo

.PHONY: test
test: tools check build ## Run every test: unit, property, real API server, end to end (of long stories a slice)
	cargo test $(UNITS) --no-run
	cargo test --package e2e --no-run
	@# Stories mostly wait, for Velero and for the clock: several at a time, of several programs, and what only
	@# computes fills the gaps. The longest come first.
	@$(MAKE) --no-print-directory --jobs=5 --output-sync=target stories hands kubevirt patient units SKIP="$(SLOW)"
	@# Alone, since they measure.
	cargo test --package e2e --test migration -- quick
	cargo test --package e2e --test burst --test speed -- --nocapture
	@echo "== All tests passed."

.PHONY: long
long: tools build ## Tell the long stories too: at full size, to the last write, silent for minutes (half an hour)
	cargo test --package e2e --no-run
	@NACRE_LONG=1 $(MAKE) --no-print-directory --jobs=2 --output-sync=target patient kubevirt stories hands
	@# Alone, since it measures, and one at a time.
	RUST_TEST_THREADS=1 cargo test --package e2e --test long -- --nocapture
	@echo "== All long tests passed."

# Stories that take minutes of clocks and clusters are told by `make long`. Of keys and of what the Go controller left,
# the planner's own stories tell in memory.
SLOW := --skip rotation:: --skip takeover::
# Parts of `test` and `long`: they mostly wait, so they run beside each other.
.PHONY: units stories patient kubevirt hands
units:
	RUST_TEST_THREADS=2 nice cargo test $(UNITS)
stories:
	RUST_TEST_THREADS=3 cargo test --package e2e --lib --test stories
patient:
	RUST_TEST_THREADS=2 cargo test --package e2e --test patient -- $(SKIP)
kubevirt:
	RUST_TEST_THREADS=3 cargo test --package e2e --test migration --test install -- --skip quick
hands:
	RUST_TEST_THREADS=3 cargo test --package e2e --test cli --test faults --test security_table
	cargo test --package e2e --test attacks

# How many requests `make bench` makes. PEER, PEER_FAST, PEER_UP_TO, LIMIT and NOTE reach it by the environment.
N := 100 1000 10000
.PHONY: bench
bench: tools ## Measure nacre under load, N="100 1000 10000", beside PEER=program; figures in docs/benchmarks.md (half an hour)
	@cargo build --release --package operator --package e2e
	@# What is measured is what images hold.
	@cargo build --profile dist --package operator
	@NACRE_BIN=$${NACRE_BIN:-$${CARGO_TARGET_DIR:-$(CURDIR)/target}/dist/nacre} target/release/bench $(N)

.PHONY: model
model: ## Explore the planner's small worlds to their ends, and say how many states there are (minutes)
	NACRE_MODEL=full RUST_TEST_THREADS=1 cargo test --release --package planner --test model -- --nocapture

.PHONY: faults
faults: tools build ## Every story under a thousand seeds of faults, hundreds on a real API server, and what breaks around it
	NACRE_FAULTS=1000 cargo test --release --package planner --test stories
	NACRE_SEEDS=200 cargo test --package e2e --test faults -- --nocapture
	RUST_TEST_THREADS=2 cargo test --package e2e --test around -- --nocapture

.PHONY: mutants
mutants: ## Change the planner in every small way and see which change no test notices (hours; installs its tool first)
	@cargo install --quiet --locked cargo-mutants
	cargo mutants --package planner --config .cargo/mutants.toml

.PHONY: check
check: ## Formatting, lints, each crate by itself, generated files
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings
	@# Cargo unifies features over a workspace, so only alone does each crate show what it really needs.
	@for crate in $(CRATES); do \
	  echo "== $$crate, alone"; cargo check --quiet --package $$crate || exit 1; \
	done
	cargo test --quiet $(GENERATED)
	cargo test --quiet $(REFERENCE)

.PHONY: build
build: ## Build both programs as they ship
	cargo build --release --package operator --package cli

.PHONY: gen
gen: ## Write the generated files in deploy/ and docs/ anew
	NACRE_GEN=1 cargo test --quiet $(GENERATED)
	NACRE_GEN=1 cargo test --quiet $(REFERENCE)

.PHONY: audit
audit: ## Licences, unused dependencies, spelling, advisories (OFFLINE=1: all but these; installs its tools first)
	@for tool in cargo-deny cargo-machete typos-cli; do cargo install --quiet --locked $$tool || exit 1; done
	cargo deny check bans licenses sources
	cargo machete
	typos
	$(if $(OFFLINE),@echo "== Advisories were not looked at: OFFLINE is set.",cargo deny check advisories)

.PHONY: tools
tools: ## Build the programs of the test cluster, once per machine; the last line is their folder
	@tools/build.sh

.PHONY: node-tools
node-tools: ## Build the programs of a node (kubelet, containerd), once per machine; checks for the packages they need
	@tools/node/build.sh

.PHONY: node
node: tools node-tools ## Test the cluster with a node: pods, volumes, nothing left behind (Linux and root; a minute)
	cargo clippy $(UNITS) --test node -- --deny warnings
	cargo test $(UNITS) --test node

.PHONY: up
up: tools ## Start a real cluster with Velero in the background, in .bed/
	@cargo run --quiet --package bed -- up --dir $(BED) --with-velero

.PHONY: down
down: ## Stop the cluster of `make up`
	@cargo run --quiet --package bed -- down --dir $(BED)
