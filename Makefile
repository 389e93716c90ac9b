# Everything begins here: `make help`.
SHELL := bash
.DEFAULT_GOAL := help

# The cluster of `make up` lives here.
BED := .bed
CRATES := api planner live_migration runtime engine controller cli image bed e2e
# The crates with unit tests, always all of them: another selection has other features, and builds the dependencies again.
UNITS := --workspace --exclude e2e
# The tests that keep generated files current, and write them with NACRE_GEN.
GENERATED := $(UNITS) --test crds --test manifests --test operator_manifest --test policy --test troubleshooting
# The same for what is made of the command line: docs/cli.md and the manual pages.
REFERENCE := $(UNITS) --bin kubectl-nacre reference

# A real node takes Linux and root. With CI=true it must run.
IF_NODE := if [ "$$(uname)" = Linux ] && [ "$$(id -u)" = 0 ] || [ "$$CI" = true ];

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: tools ## Show a tenant's volume lost and brought back on a real cluster, with real output (without Linux and root: objects only)
	@$(IF_NODE) then tools/node/build.sh >/dev/null || true; tools/packages.sh sqlite3 || true; fi
	@echo "== Building nacre"
	@cargo build --release --package controller --package cli --package e2e
	@$${CARGO_TARGET_DIR:-target}/release/demo

.PHONY: cast
cast: ## Run the demo, and draw what its ransomware story printed as docs/ransomware.svg
	@set -o pipefail; $(MAKE) --no-print-directory demo | tee /dev/stderr | tools/cast.sh "== Ransomware" "== bob" > docs/ransomware.svg

# Without CI=true, `make test` leaves out the slowest stories (ONLY_CI_... below) and what measures.
BRIEF := $(if $(filter true,$(CI)),,yes)
.PHONY: test
test: tools lint build ## Run every test but the slowest: unit, property, real API server, end to end; with CI=true these too
	cargo test $(UNITS) --no-run
	cargo test --package e2e --no-run
	cargo test --package e2e --test console --no-run
	@# Stories mostly wait for Velero and timers, so several test programs run in parallel. The longest come first.
	@$(MAKE) --no-print-directory --jobs=4 --output-sync=target stories cli-attacks console kubevirt slow units \
	  SKIP="$(SKIP_LONG)$(if $(BRIEF), $(ONLY_CI_SLOW))" \
	  $(if $(BRIEF),SKIP_STORIES="$(ONLY_CI_STORIES)" SKIP_KUBEVIRT="$(ONLY_CI_KUBEVIRT)" SKIP_CONSOLE="$(ONLY_CI_CONSOLE)")
	@$(IF_NODE) then \
	  $(MAKE) --no-print-directory node $(if $(BRIEF),SKIP_NODE="$(ONLY_CI_NODE)" SKIP_BED="$(ONLY_CI_BED)"); \
	else \
	  echo "== The tests with a node were not run: they need Linux and root."; \
	fi
ifdef BRIEF
	@tools/left-out.sh $(LEFT_OUT)
else
	@$(MAKE) --no-print-directory measured
	@echo "== All tests passed."
endif

# What is left out without CI=true, as arguments of `cargo test`.
LEFT_OUT = "--package e2e --test stories -- $(call named,$(ONLY_CI_STORIES))" \
  "--package e2e --test live_migration --test install -- $(call named,$(ONLY_CI_KUBEVIRT))" \
  "--package e2e --test slow -- $(call named,$(ONLY_CI_SLOW))" \
  "--package e2e --test node -- $(call named,$(ONLY_CI_NODE))" \
  "$(UNITS) --test node -- $(call named,$(ONLY_CI_BED))" \
  "--package e2e --test load --test speed --" "--package e2e --test console -- many:: $(call named,$(ONLY_CI_CONSOLE))"
named = $(filter-out --skip,$(1))

.PHONY: long
long: tools build ## Run the long stories at full size (half an hour)
	cargo test --package e2e --no-run
	cargo test --package e2e --test console --no-run
	@NACRE_LONG=1 $(MAKE) --no-print-directory --jobs=2 --output-sync=target slow kubevirt stories cli-attacks console
	@# Alone, since it measures, and one at a time.
	@$(MAKE) --no-print-directory console CONSOLE="--nocapture many::"
	RUST_TEST_THREADS=1 cargo test --package e2e --test long -- --nocapture
	@$(IF_NODE) then $(MAKE) --no-print-directory long-node; else echo "== No stories on a node: they need Linux and root."; fi
	@without=; tools/browser.sh || without=" a browser"; \
	$(IF_NODE) then :; else without="$$without$${without:+ or} a node"; fi; \
	if [ -z "$$without" ]; then echo "== All long tests passed."; \
	else echo "== The long tests passed that run without$$without. The others were not run."; fi

# Stories that take minutes run in `make long` only. Key rotation and takeover from the Go controller are also tested
# in memory, by the runtime's stories.
SKIP_LONG := --skip rotation:: --skip takeover::
SKIP_LONG_NODE := --skip bombed:: --skip choices:: --skip console:: --skip damaged:: --skip demo:: --skip disturbed:: --skip evicted:: --skip fenced:: --skip flood:: --skip given_up:: --skip heavy:: --skip hooks:: --skip interrupted:: --skip moved:: --skip on_oadp:: --skip own_bucket:: --skip refused_imports:: --skip relocated:: --skip replaced:: --skip upgraded:: --skip verify:: --skip volumes::
# Only `CI=true make test` runs these, since they take the most time. By module, or by a test's name: a new story runs
# unless it is listed here. `make stories`, `make slow` and so on run them all. docs/security.md marks them.
ONLY_CI_STORIES := --skip every_minute --skip admission:: --skip bomb:: --skip csi:: --skip dedicated:: --skip demo:: --skip downloads:: --skip drop_in:: --skip fence:: --skip forged:: --skip imported:: --skip killed:: --skip on_oadp:: --skip operator:: --skip relocated:: --skip requester:: --skip requester_exact:: --skip requester_extra:: --skip requester_robots:: --skip requester_rules:: --skip requester_webhook:: --skip results:: --skip siege:: --skip snapshot_classes:: --skip turns::
ONLY_CI_KUBEVIRT := --skip guard:: --skip upgrade:: --skip who_can:: --skip privileges:: --skip privileges_of_live_migration:: --skip privileges_of_operator:: --skip privileges_of_view:: --skip values::
ONLY_CI_SLOW := --skip location:: --skip native_snapshots:: --skip rejected_writes:: --skip standstill:: --skip velero_view::
ONLY_CI_CONSOLE := --skip hostile:: --skip look:: --skip progress:: --skip replace:: --skip schedules::
ONLY_CI_NODE := --skip finished:: --skip overwritten:: --skip stuck:: --skip a_claim_that_no_pod_mounts --skip a_claim_whose_volume_is_a_folder
ONLY_CI_BED := --skip bytes_in_a_volume --skip kept_in_the_background
# Parts of `test` and `long`: they mostly wait, so they run in parallel.
.PHONY: units stories slow kubevirt cli-attacks console measured
units:
	@# Completion is tested in the real shells.
	@tools/packages.sh zsh fish || [ "$$CI" != true ]
	RUST_TEST_THREADS=2 nice -n 4 cargo test --no-fail-fast $(UNITS)
ifeq ($(origin KUBECONFIG),command line)
stories: build ## Run the tenants' stories in the cluster of KUBECONFIG=FILE, with Velero and nacre in it (NAME=... for some of them)
	tools/stories.sh $(KUBECONFIG) $(NAME)
else
stories:
	cargo test --package e2e --lib
	RUST_TEST_THREADS=3 cargo test --no-fail-fast --package e2e --test stories -- $(SKIP_STORIES)
endif
slow:
	RUST_TEST_THREADS=2 cargo test --package e2e --test slow -- $(SKIP)
kubevirt:
	RUST_TEST_THREADS=3 cargo test --no-fail-fast --package e2e --test live_migration --test install -- --skip quick $(SKIP_KUBEVIRT)
# Which of them: the one that measures runs alone.
CONSOLE := --skip many::
console: ## Run the tests of the console in a real browser; pictures of its pages are in target/console
	@if tools/browser.sh || [ "$$CI" = true ]; then \
	  RUST_TEST_THREADS=4 cargo test --package e2e --test console -- $(CONSOLE) $(SKIP_CONSOLE); \
	else \
	  echo "== The console was not tested in a browser: there is none."; \
	fi
cli-attacks:
	RUST_TEST_THREADS=3 cargo test --no-fail-fast --package e2e --test cli --test faults --test security_table
	cargo test --package e2e --test attacks
measured:
	@# Alone, and one at a time, since they measure.
	cargo test --package e2e --test live_migration -- quick
	RUST_TEST_THREADS=1 cargo test --no-fail-fast --package e2e --test load --test speed -- --nocapture
	@$(MAKE) --no-print-directory console CONSOLE="--nocapture many::"

# How many requests `make bench` makes. PEER, PEER_FAST, PEER_UP_TO, LIMIT and NOTE reach it by the environment.
N := 100 1000 10000
.PHONY: bench
bench: tools ## Measure nacre under load, N="100 1000 10000", compared with PEER=program; figures in docs/benchmarks.md (half an hour)
	@cargo build --release --package controller --package e2e
	@# What is measured is what images hold.
	@cargo build --profile dist --package controller
	@NACRE_BIN=$${NACRE_BIN:-$${CARGO_TARGET_DIR:-$(CURDIR)/target}/dist/nacre} target/release/bench $(N)

# Which seeds `make siege` makes hostile buckets of.
SEEDS := 0..2000
.PHONY: siege
siege: tools build ## Restore hostile buckets through real Velero and look at the whole cluster after each, SEEDS=0..2000 (hours)
	SEEDS=$(SEEDS) RUST_TEST_THREADS=1 cargo test --package e2e --test stories -- --nocapture siege::

.PHONY: costs
costs: tools build ## Measure what the fence costs a restore, and what Velero without its cache costs (a quarter of an hour; part of `make long`)
	RUST_TEST_THREADS=1 cargo test --package e2e --test long -- --nocapture costs::

.PHONY: model
model: ## Run the model checker completely, and print the number of states (minutes)
	NACRE_MODEL=full RUST_TEST_THREADS=1 cargo test --release --package runtime --test model -- --nocapture

.PHONY: faults
faults: tools build ## Run every story under a thousand fault seeds, hundreds on a real API server, and the outage tests
	NACRE_FAULTS=1000 cargo test --release --package runtime --test stories
	NACRE_SEEDS=200 cargo test --package e2e --test faults -- --nocapture
	RUST_TEST_THREADS=2 cargo test --package e2e --test outages -- --nocapture

MUTANTS_VENV = $${CARGO_TARGET_DIR:-target}/mutants/venv
.PHONY: mutants
mutants: ## Change planner and runtime in every small way and see which change no test notices (all in one build; FILES="PATH..." tries only these; installs its tools first)
	@cargo install --quiet --locked cargo-mutants
	@python3 -m venv $(MUTANTS_VENV) && $(MUTANTS_VENV)/bin/pip install --quiet tree-sitter tree-sitter-rust
	@$(MUTANTS_VENV)/bin/python -B tools/mutants/run.py $(FILES)

.PHONY: check lint
check: lint ## Formatting, lints, each crate by itself, generated files
	cargo test --quiet $(GENERATED)
	cargo test --quiet $(REFERENCE)
# Without the generated files, whose tests are among the unit tests of `make test`.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings
	@# Tests that need a browser or a node are not among all targets.
	cargo clippy --workspace --test console --test node -- --deny warnings
	@# Cargo unifies features over a workspace, so only alone does each crate show what it really needs.
	@for crate in $(CRATES); do \
	  echo "== $$crate, alone"; cargo check --quiet --package $$crate || exit 1; \
	done

.PHONY: build
build: ## Build both programs as they ship
	cargo build --release --package controller --package cli

# The image is made for this machine's kind. Only programs built for a named target can be static: else the flag would
# also be for build scripts and macros.
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
STATIC := $${CARGO_TARGET_DIR:-target}/$(HOST)/dist
IMAGE := $${CARGO_TARGET_DIR:-target}/nacre-image.tar
.PHONY: image
image: ## Make the image that ships, without a registry or docker: target/nacre-image.tar (a quarter of an hour)
	NACRE_COMMIT=$$(git rev-parse --short=12 HEAD) RUSTFLAGS="-C target-feature=+crt-static" \
	  cargo build --locked --profile dist --target $(HOST) --package controller --package cli
	@cargo run --quiet --release --package image -- archive --programs $(STATIC) $(IMAGE)
	@# The tests of the layout look at this archive, its size included.
	NACRE_IMAGE=$$(realpath $(IMAGE)) cargo test --quiet $(UNITS) --test layout
	@echo "== Load it with: podman load --input $(IMAGE)"

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# PROFILE, UNTAGGED, TARGETS and OUT reach it by the environment.
.PHONY: release
release: ## Make a release of a tagged commit: programs, image, chart, manifests, bundle, documents (UNTAGGED=1 PROFILE=release: only try it)
	@PROFILE="$(PROFILE)" UNTAGGED="$(UNTAGGED)" TARGETS="$(TARGETS)" tools/release.sh

.PHONY: release-again
release-again: ## Make the release a second time at another path, and compare every byte
	@PROFILE="$(PROFILE)" UNTAGGED="$(UNTAGGED)" TARGETS="$(TARGETS)" tools/release-again.sh

# Runs a program on the release's folder, `out`.
IN_RELEASE = out=$${OUT:-$${CARGO_TARGET_DIR:-target}/release-v$(VERSION)} && \
  { [ -f "$$out/SHA256SUMS" ] || { echo "There is no release in $$out: run make release first"; exit 1; }; } &&
.PHONY: krew
krew: ## Have krew itself check its manifest in the release, and install the plugin by it (needs Go)
	@$(IN_RELEASE) tools/krew.sh "$$out"

.PHONY: release-try
release-try: krew tools node-tools ## Try the release with its files alone: install it in three ways, restore a volume, uninstall (Linux and root; minutes)
	@cargo build --quiet --package bed
	@$(IN_RELEASE) tools/release-try.sh "$$out" $${CARGO_TARGET_DIR:-target}/debug/bed

.PHONY: bundle
bundle: ## Have OLM's own library check the bundle in deploy/olm; part of `make audit`
	@tools/bundle.sh

.PHONY: gen
gen: ## Regenerate the files in deploy/ and docs/
	NACRE_GEN=1 cargo test --quiet $(GENERATED)
	NACRE_GEN=1 cargo test --quiet $(REFERENCE)
	NACRE_GEN=1 cargo test --quiet --package e2e --test security_table

.PHONY: audit
audit: ## Licences, unused dependencies, spelling, words, the bundle (needs Go), advisories; installs its tools first. OFFLINE=1: no advisories, and the bundle only where Go has its modules
	tools/words.sh
	tools/bundle.sh
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
node: tools node-tools build ## Test nacre in pods on a real node, with volumes; nothing is left behind (Linux and root; minutes)
	cargo test $(UNITS) --test node -- $(SKIP_BED)
	RUST_TEST_THREADS=3 cargo test --package e2e --test node -- $(SKIP_LONG_NODE) $(SKIP_NODE)

.PHONY: long-node
long-node: tools node-tools build image ## Run all stories on a node with the image that ships; part of `make long`
	tools/packages.sh sqlite3
	NACRE_IMAGE=$$(realpath $(IMAGE)) RUST_TEST_THREADS=3 cargo test --package e2e --test node -- --nocapture

# The release that `make upgrade` starts from, and its folder.
FROM := HEAD~100
PREVIOUS := $${CARGO_TARGET_DIR:-$(CURDIR)/target}/previous-release
.PHONY: upgrade
upgrade: tools node-tools build ## Upgrade from FROM=COMMIT to this release and back on a node, by the command line, Helm and OADP's way, with requests arriving
	tools/previous.sh $(FROM) $(PREVIOUS)
	NACRE_PREVIOUS=$(PREVIOUS) RUST_TEST_THREADS=1 cargo test --package e2e --test node -- --nocapture upgraded::

# Which older Kubernetes (with `KUBERNETES=` the current one) and Velero `make compatibility` runs.
KUBERNETES := 1.34.4
VELERO :=
# What is left out before Kubernetes 1.36: stories of policies that change objects, which only that has.
NEWER := --skip siege:: --skip imported:: --skip on_oadp:: $(addprefix --skip requester,:: _exact:: _extra:: _robots:: _rules::)
# What is left out with an older Velero, by the reasons in docs/compatibility.md.
# Forged backups: what they ask of nacre holds, and their counter-check does not: this Velero restores less of a forgery.
FORGED := siege:: forged:: fence::a10_h4 fence::a7_a8 fence::h4_without fence::x4 dedicated::a7_a9
# It has no import that nacre trusts, no volume policy of nacre's, no flag for several backups at a time,
# no phase Queued, and fewer fields.
LACKING := imported:: on_oadp::with_the_extra_role snapshot_classes:: turns::all_workers admission::f6_with_nacre_down_veleros \
  drop_in::under_oadps_role velero_fields::
# It waits ten minutes for a claim whose snapshot is lost, restores snapshots as objects of their own, and reads no nodes.
OTHERWISE := csi::a_claim_comes_back csi::snapshots_are_taken dedicated::backups_and_restores
OLDER_VELERO := $(addprefix --skip ,$(FORGED) $(LACKING) $(OTHERWISE))
.PHONY: compatibility
compatibility: tools build ## Run the stories on an older Kubernetes, and with VELERO=1.14.0 with that Velero; KUBERNETES=1.34.4
	@bin=$$(tools/older.sh "$(KUBERNETES)" "$(VELERO)") && export NACRE_BED_BIN="$$bin" RUST_TEST_THREADS=3 && \
	  cargo test --no-fail-fast --package e2e --test stories -- $(if $(KUBERNETES),$(NEWER)) $(if $(VELERO),$(OLDER_VELERO))
	@echo "== The stories passed on $(if $(KUBERNETES),Kubernetes $(KUBERNETES),the current Kubernetes)$(if $(VELERO), with Velero $(VELERO))."

.PHONY: up
up: tools build ## Start a real cluster with Velero and nacre in the background, in .bed/; with NODE=1 one that runs pods (Linux and root)
	@cargo run --quiet --package bed -- up --dir $(BED) $(if $(NODE),--with-node,--with-velero)
	@tools/try.sh up $(BED)

.PHONY: down
down: ## Stop the cluster of `make up`
	@tools/try.sh down $(BED)
	@cargo run --quiet --package bed -- down --dir $(BED)
