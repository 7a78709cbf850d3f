# Each recipe is what CI runs, so that a red step is reproduced by its name.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The tools have modules of their own, so that what they need is no dependency of ours.
TOOL := go tool -modfile=$(CURDIR)/tools/go.mod
LINT := go tool -modfile=$(CURDIR)/tools/lint/go.mod golangci-lint

BENCH ?= full
FUZZTIME ?= 1m
BREAK ?= 1m
TRIALS ?= 1
PART ?= 1/1
NEST ?= 2s
SEEDS ?= 1000
FIRST ?= 1
ROUNDS ?= 10
BENCHTIME ?= 200ms

# The race detector needs a C compiler; go turns cgo off where there is none.
RACE ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# Packages with tests that carry the build tag realzk.
ZK_PACKAGES = $(sort $(dir $(shell grep -rlE '^//go:build .*\brealzk\b' --include='*_test.go' .)))

.PHONY: help demo test test-noraw sim mutants test-zk break test-interop test-examples lint fmt cover bench fuzz vuln tidy check sweeps nesting test-secrets compare mixed

help: ## list targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## watch processes share locks (ZK_CONNECT=host:port for a server of yours)
	@echo "building the demo; with empty caches this takes about a minute"
	@go build -o bin/demo ./examples/demo
	@bin/demo

test: ## everything that needs only Go, on the in-process server
	@echo "running the tests; this takes 3 to 10 minutes, a package at a time"
	@$(if $(RACE),:,echo "no C compiler: running without the race detector")
	@go test $(RACE) -shuffle=on -timeout 20m ./...
	@cd internal/test/simulation && go test -shuffle=on ./...
	@go test -run '^TestAllocations$$' ./internal/test/transcript # is not built with the race detector, which allocates

# Without the race detector, which makes the scheduler choose at random.
test-noraw: ## the transport's tests and the cases on the in-process server, without raw system calls
	go test -tags paddock_noraw ./internal/transport/... ./internal/test/transcript
	go test -tags paddock_noraw -run TestInProcess ./internal/test/conformance

sim: ## clients, faults and judges in virtual time, SEEDS=1000 of them (SEED=n tells the story of one, FAULTS=1,2,3 with these only)
	@cd internal/test/simulation && go test -count=1 -timeout 0 -v -run '^TestSeeds$$' . -args \
		$(if $(SEED),-seed $(SEED) -faults '$(FAULTS)',-seeds $(SEEDS) -first $(FIRST) -workers $$(nproc))

# They print what they measured, and take as long as one likes.
BREAKING := ^(TestMargin|TestHoldsAtADistance|TestNestingProcesses|TestBreak)$$

test-zk: ## on real ZooKeepers, one and three, which the tests start (needs Java)
	@SUITES='TestInProcess TestInProcessAs39 TestStandalone TestEnsemble' .ci/gotest \
		-tags realzk $(RACE) -skip '$(BREAKING)' -shuffle=on -count=1 -p 1 -timeout 30m $(ZK_PACKAGES)

break: ## break real ensembles under processes for BREAK (1m); TRIALS (1) of when holds end; holds behind delays; crowds for NEST (2s) each
	@go test -tags realzk $(RACE) -count=1 -timeout 0 -parallel 8 -v -run '$(BREAKING)' ./internal/test/robustness \
		-args -break $(BREAK) -trials $(TRIALS) -nest $(NEST)

test-interop: ## in one queue with Curator, kazoo and zk.Lock (needs a JDK, libcurator-recipes-java, python3-kazoo)
	@.ci/gotest -tags interop $(RACE) -count=1 -timeout 10m ./internal/test/interop

# A module of its own, so that a database driver is no dependency of ours.
test-examples: ## locks that protect data in a database and in an object store (fetches modules)
	@cd examples/fencing && go mod tidy -diff && $(LINT) run
	@cd examples/fencing && go test $(RACE) -shuffle=on ./...

mutants: ## plant bugs, one at a time: the tests must find each (ONLY=row or part of a name, PART=1/3)
	@go run ./internal/test/faults -part $(PART) $(if $(ONLY),-only '$(ONLY)')

# What these tests print is their result.
SHOW := grep -E '^ *(sweep|nesting): |^(ok|FAIL|panic)|--- FAIL|Error:|Messages:'

sweeps: ## every failure at every request of every call, with the counts
	@go test -count=1 -timeout 20m -run '^(TestEachRequestOfEachCallFails|TestEachRequestFails.*|TestUserCodeFailsAtAnyCall)$$' -v ./framework ./recipes/locks -sweeps | $(SHOW)

nesting: ## all mixtures of MultiLocks with owners who take the same locks one after another, with their rounds (PART=1/3)
	@go test -count=1 -timeout 30m -run '^TestNesting$$' -v ./recipes/locks -nesting $(PART) | $(SHOW)

test-secrets: ## every case with a marked password, everything logged: it is told nowhere
	@out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	if ! go test -count=1 -timeout 10m -run '^TestInProcess' -v ./internal/test/conformance -secrets >"$$out" 2>&1; then \
		grep -vE '^ *(=== |--- (PASS|SKIP))' "$$out" | tail -n 80; exit 1; \
	fi; \
	if grep -qi canaryofthewhole "$$out"; then echo "the tests themselves print the password"; exit 1; fi; \
	grep '^secrets: ' "$$out"

lint: ## format, vet and .golangci.yml
	@$(LINT) config verify
	@$(LINT) fmt --diff
	@$(LINT) run
	@cd internal/test/simulation && $(LINT) fmt --diff && $(LINT) run

fmt: ## format all files
	@$(LINT) fmt
	@cd internal/test/simulation && $(LINT) fmt

cover: ## coverage of each package by all tests that need only Go: of framework and of each package of recipes 95 % at least
	@.ci/cover 95 framework recipes/...

bench: ## locks next to zk.Lock and raw create+delete, into docs/bench.* (BENCH=quick or ONLY=expression print only; needs Java)
	@go run ./internal/test/bench $(if $(filter quick,$(BENCH)),-quick,-out docs) $(if $(ONLY),-only '$(ONLY)')

# Allocations per acquisition are exact in internal/test/transcript; here the server's are among them.
compare: ## benchmarks of the commit OLD and of what is here, in turns, ROUNDS (10) of them, for benchstat (in process, or ZK_CONNECT=host:port)
	@rm -f bin/old.txt bin/new.txt
	@.ci/old-test '$(OLD)' bench bin/old.test
	@go test -c -o bin/new.test ./internal/test/bench
	@for ((i = 0; i < $(ROUNDS); i++)); do \
		for which in $$( ((i % 2)) && echo new old || echo old new); do \
			bin/$$which.test -test.run '^$$' -test.bench '$(or $(ONLY),.)' -test.benchtime $(BENCHTIME) | sed '/^pkg: /d' >>bin/$$which.txt; \
		done; \
	done
	@$(TOOL) benchstat bin/old.txt bin/new.txt

mixed: ## processes of the commit OLD and of what is here share locks on real ZooKeepers, which break for BREAK (1m) (needs Java)
	@.ci/old-test '$(OLD)' endurance bin/old.test realzk
	@go test -tags realzk -count=1 -timeout 0 -v -run '^(TestManyProcesses|TestOppositeMultiLocks|TestNestingProcesses|TestBreak)$$' ./internal/test/robustness \
		-args -old $(CURDIR)/bin/old.test -break $(BREAK) -nest $(NEST)

fuzz: ## each fuzz target for FUZZTIME (1m)
	@.ci/fuzz $(FUZZTIME)

vuln: ## known vulnerabilities (needs the network)
	@$(TOOL) govulncheck -test ./...

tidy: ## whether go.mod and go.sum are tidy
	@go mod tidy -diff
	@for module in internal/test/simulation tools tools/lint; do go -C $$module mod tidy -diff; done

check: tidy lint test ## what each commit must pass
