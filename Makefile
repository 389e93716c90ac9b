# Everything begins here: `make help`.
SHELL := bash
.DEFAULT_GOAL := help

# The cluster of `make up` lives here.
BED := .bed

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: tools
tools: ## Build the programs of the test cluster, once per machine; the last line is their folder
	@tools/build.sh

.PHONY: up
up: tools ## Start a real cluster with Velero in the background, in .bed/
	@cargo run --quiet --package bed -- up --dir $(BED) --with-velero

.PHONY: down
down: ## Stop the cluster of `make up`
	@cargo run --quiet --package bed -- down --dir $(BED)
