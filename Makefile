# Entry point of the project. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-rocksdb check unit examples bench instructions shuttle miri tsan fuzz clean

export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

# What the demo measures: small enough for a minute on two cores, real data, the evaluation's own shape.
DEMO_DATA ?= packages
DEMO_CODECS ?= none,lz4,zstd:1,deflate:1
DEMO_WORKLOADS ?= read_only,read_write_8_2,write_only
DEMO_KEYS ?= 20000
DEMO_SECONDS ?= 1
DEMO_OUT ?= leafpress-results/demo

# Time for all fuzz targets together.
FUZZ_SECONDS ?= 60

NIGHTLY ?= nightly
LEAFPRESS = target/release/leafpress

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{ printf "  make %-13s %s\n", $$1, $$2 }'

setup: ## install what a build needs: a C compiler, Rust
	@scripts/setup

build: setup ## build the release binary
	cargo build --release -p leafpress-cli

demo: build ## load real records into the compressed tree, measure, print the table, write the report
	@echo
	$(LEAFPRESS) eval --data $(DEMO_DATA) --codecs $(DEMO_CODECS) --workloads $(DEMO_WORKLOADS) \
		--keys $(DEMO_KEYS) --seconds $(DEMO_SECONDS) --out $(DEMO_OUT)
	@echo "The charts are in $(DEMO_OUT)/report.html: open it in a browser."

test: check unit examples shuttle miri tsan fuzz ## everything CI runs
	@echo "==> all checks passed"

test-rocksdb: ## the RocksDB integration; compiles RocksDB once, outside the checkout (20 minutes)
	@scripts/test-rocksdb

check: ## formatting, clippy and the documentation, warnings are errors
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' || { echo "marks of a merge conflict were left" >&2; exit 1; }
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

# For memory to run out in a test, nodes must come from the program's allocator.
unit: ## unit, integration and documentation tests
	cargo test --workspace
	cargo test -p leafpress --no-default-features --features codecs,io-uring --test alloc_faults

# The other examples measure something and take files to measure on; `check` and `unit` compile them.
EXAMPLES = quickstart concurrent scan dictionary pool

examples: ## run the library's examples
	@for name in $(EXAMPLES); do \
		echo "==> example $$name"; \
		cargo run -q -p leafpress --example $$name > /dev/null; \
	done

bench: ## benchmarks of the library
	cargo bench -p leafpress --bench tree
	cargo bench -p leafpress --bench pool
	@scripts/bench-instructions

instructions: ## instructions per operation, counted by callgrind
	@scripts/bench-instructions

miri: ## the nodes and the pool under Miri (nightly)
	@scripts/sanitize miri

tsan: ## the concurrent tests under ThreadSanitizer (nightly)
	@scripts/sanitize tsan

shuttle: ## interleavings of a few threads, chosen by a model checker
	@scripts/sanitize shuttle

fuzz: ## every fuzz target, FUZZ_SECONDS=60 for all together
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz

clean: ## remove what was built
	cargo clean
