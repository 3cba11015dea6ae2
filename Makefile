# Entry point of the project. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-deep test-rocksdb test-valkey test-c demo-valkey bench-valkey test-python bench-python check unit examples web tower shuttle faults history resident shuttle-long miri tsan asan fuzz \
	aarch64 features msrv package flaky bench instructions scaling tables clean

export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

# What the demo measures: small enough for a minute on two cores, real records under their own keys, loaded in random order.
DEMO_DATA ?= characters
DEMO_RECORDS ?= jsonl:/name
DEMO_CODECS ?= none,lz4,zstd:1,deflate:1
DEMO_WORKLOADS ?= read_only,read_write_8_2,write_only
DEMO_SECONDS ?= 1
DEMO_MEMORY ?= 16M
DEMO_ENGINES ?= leafpress,quick_cache
DEMO_OPERATIONS ?= 1000000
DEMO_OUT ?= leafpress-results/demo

LEAFPRESS = target/release/leafpress
PACKAGE_PYTHON = $(or $(CARGO_TARGET_DIR),target)/python/bench/bin/python -B
VALKEY_PYTHON = $(or $(CARGO_TARGET_DIR),target)/valkey/venv/bin/python -B

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | awk -F'\t' '{ printf "  make %-13s %s\n", $$1, $$2 }'
	@echo
	@echo "Seconds that the deep checks may run, without building; what is left out is said at the end:"
	@echo "  MIRI_SECONDS=600 TSAN_SECONDS=600 ASAN_SECONDS=300 FUZZ_SECONDS=300 SHUTTLE_SECONDS=600"
	@echo "  FAULT_SECONDS=180 HISTORY_SECONDS=300 RESIDENT_SECONDS=300 AARCH64_SECONDS=300 VALKEY_SECONDS=300"
	@echo "REQUIRE=1 makes a failure of a check that is skipped though what it needs could be installed."

setup: ## install what a build needs: a C compiler, Rust
	@scripts/setup

build: setup ## build the release binary
	cargo build --release -p leafpress-cli

demo: build ## load real records into the compressed tree and cache, measure, print the tables, write the reports
	@echo
	$(LEAFPRESS) eval --data $(DEMO_DATA) --records $(DEMO_RECORDS) --load-order random --codecs $(DEMO_CODECS) \
		--workloads $(DEMO_WORKLOADS) --seconds $(DEMO_SECONDS) --out $(DEMO_OUT)/tree
	@echo
	$(LEAFPRESS) cache --data $(DEMO_DATA) --records $(DEMO_RECORDS) --memory $(DEMO_MEMORY) --working-set 32M \
		--engines $(DEMO_ENGINES) --operations $(DEMO_OPERATIONS) --out $(DEMO_OUT)/cache
	@echo "The charts are in report.html of $(DEMO_OUT)/tree and $(DEMO_OUT)/cache: open them in a browser."

tables: build ## measure the tables of README.md and docs again, by the commands that stand above them, and write them there
	@scripts/tables

test: ## formatting, clippy, documentation, all tests, examples, a short model checker
	@scripts/checks test

test-deep: ## sanitizers, fuzzing, long model checker, faults, histories, resident memory, AArch64, each for a while
	@scripts/checks deep

test-rocksdb: ## the RocksDB integration; fetches RocksDB with mvn, or compiles it once (20 minutes)
	@scripts/test-rocksdb

test-valkey: ## the Valkey and Redis module against real servers of three versions, a cluster included (an hour)
	@scripts/test-valkey

test-c: ## the C interface, installed and used by gcc, g++, clang and valgrind (some minutes)
	@scripts/test-c

demo-valkey: ## real records in Valkey twice, native and compressed: what each takes, how fast it answers
	@scripts/setup-valkey
	@$(VALKEY_PYTHON) integrations/valkey/demo/demo.py

bench-valkey: ## the module vs the native types: memory, throughput, stalls, saving, eviction
	@scripts/setup-valkey
	@$(VALKEY_PYTHON) integrations/valkey/bench/bench.py

test-python: ## the Python package: wheel, tests with each Python that there is, types, examples
	@scripts/test-python

bench-python: ## the Python package vs dict, SortedDict, diskcache, lmdb and shelve: memory, reads, writes
	@scripts/setup-python bench
	@$(PACKAGE_PYTHON) integrations/python/bench/bench.py
	@$(PACKAGE_PYTHON) integrations/python/bench/cache.py

check: ## formatting, licences, clippy and the documentation, warnings are errors
	@scripts/checks format clippy docs

unit: ## unit, integration and documentation tests
	@scripts/checks tests

examples: ## run the library's examples
	@scripts/checks examples

tower: ## build and test the HTTP response cache
	@scripts/checks tower

web: ## build and test the web service, and run the cache before a database
	@scripts/checks web

shuttle: ## interleavings of a few threads, chosen by a model checker
	@scripts/checks shuttle

shuttle-long: ## the same, at least 20,000 a scenario
	@scripts/checks shuttle-long

faults: ## memory that runs out, codecs and stores that fail, models with new inputs
	@scripts/checks faults

history: ## histories of concurrent operations on each structure, recorded and checked
	@scripts/checks history

resident: ## what is held against what the process grows by
	@scripts/checks resident

miri: ## the nodes and the pool under Miri (nightly)
	@scripts/checks miri

tsan: ## the library under ThreadSanitizer (nightly)
	@scripts/checks tsan

asan: ## the library under AddressSanitizer, freed blocks of its heap poisoned (nightly)
	@scripts/checks asan

fuzz: ## every fuzz target
	@scripts/checks fuzz

aarch64: ## the library compiled for Linux on AArch64, its tests under qemu-user
	@scripts/checks aarch64

features: ## the library with no feature and with each alone
	@scripts/checks features

msrv: ## the library with the oldest Rust that it names
	@scripts/checks msrv

package: ## what is published, compiled from its packages
	@scripts/checks package

flaky: ## the tests that a change touches, 30 times each: alone, under load, suspended now and then (FLAKY_BASE, FLAKY_RUNS)
	@scripts/checks flaky

bench: ## benchmarks of the library
	cargo bench -p leafpress-bench --bench tree
	cargo bench -p leafpress-bench --bench pool
	@scripts/bench-instructions

instructions: ## instructions per operation, counted by callgrind
	@scripts/bench-instructions

scaling: build ## operations per second of trees and caches with 1 to 16 threads, vs other maps and caches
	@scripts/scaling $(LEAFPRESS)

clean: ## remove what was built
	cargo clean
