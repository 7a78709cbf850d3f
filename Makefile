# Each recipe is what CI runs, so that a red step is reproduced by its name.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The tools have modules of their own, so that what they need is no dependency of ours.
TOOL := go tool -modfile=$(CURDIR)/tools/go.mod
LINT := go tool -modfile=$(CURDIR)/tools/lint/go.mod golangci-lint

# TIME is how long, PART=1/3 every third, ONLY a part of a name, OLD a commit, and
# ARGS more flags of the program or the tests that a recipe runs.
TIME ?= 1m
PART ?= 1/1
SEEDS ?= 1000

# The race detector needs a C compiler; go turns cgo off where there is none.
RACE ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# Else each process with the race detector sleeps for a second at its end, for races of
# goroutines that are left. Tests have waited for these, or fail since they are left.
export GORACE ?= atexit_sleep_ms=0

# Clients have large buffers, and go collects small heaps often, which takes most of the time
# of sweeps. Tests of memory collect before they look.
test test-full cover: export GOGC ?= 400

# Packages of this module with tests that carry the build tag realzk.
ZK_PACKAGES = $(sort $(dir $(shell grep -rlE '^//go:build .*\brealzk\b' --include='*_test.go' --exclude-dir=oncall --exclude-dir=kerberos .)))

MODULES := . internal/test/simulation internal/test/browser tools tools/lint

.PHONY: help demo check lint fmt vuln weigh release-check release-binaries release-prepare test test-full test-zk test-interop test-examples test-sasl test-kerberos test-page test-secrets cover fuzz sim faults break break-caches break-fleet bench compare-caches

help: ## list targets
	@awk -F ':.*## ' '/^#: / {print "\n" substr($$0, 4)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## watch processes share locks (ZK_CONNECT_STRING=host:port for a server of yours)
	@echo "building the demo; with empty caches this takes about a minute"
	@go build -o bin/demo ./examples/demo
	@bin/demo

#: Each commit

check: lint test ## what each commit must pass

lint: ## tidy modules, format, vet and .golangci.yml
	@for module in $(MODULES); do go -C $$module mod tidy -diff; done
	@$(LINT) config verify
	@$(LINT) fmt --diff
	@$(LINT) run
	@for dir in internal/test/simulation internal/test/browser tools/release tools/plots; do (cd $$dir && $(LINT) fmt --diff . && $(LINT) run .); done

fmt: ## format all files
	@$(LINT) fmt
	@for dir in internal/test/simulation internal/test/browser tools/release tools/plots; do (cd $$dir && $(LINT) fmt .); done

test: ## everything that needs only Go, on the in-process server
	@echo "running the tests; this takes 3 to 10 minutes, a package at a time"
	@$(if $(RACE),:,echo "no C compiler: running without the race detector")
	@go test $(RACE) -shuffle=on -timeout 20m ./...
	@cd internal/test/simulation && go test -shuffle=on ./...
	@go test -run '^TestAllocations$$' ./internal/test/transcript # is not built with the race detector, which allocates

#: More tests

# What these tests print is their result.
SHOW := grep -E '^ *(sweep|nesting|crowds|restarts of [0-9.]*): |^(ok|FAIL|panic)|--- FAIL|Error:|Messages:'

test-full: ## what test runs a part of: every failure at every request of every call and at every moment, elections and mixtures of MultiLocks (PART of these)
	@go test -count=1 -timeout 20m -run '^(TestEachRequest.*Fails.*|Test.*AtAnyMoment|TestHostileServer|TestTwoKindsOfLockAtOnce|TestMargins|TestOwnLoadLosesNoHold|TestTheWrongKindHarmsNobody|TestHoldStands.*|TestHoldBesideLongReplies|Test.*AreNoAnswers|TestEndOfAContextIsNoAnswer|TestCallsEndWithTheirContext|TestCommitSaysWhatHappened|TestKindsNeverMeet|TestWatchesBesideSubscriptions)$$' -v ./framework ./recipes/locks -sweeps | $(SHOW)
	@go test -count=1 -timeout 20m -run '^TestEachRequestOfAnElectionFails$$' -v ./recipes/leader -sweeps $(PART) | $(SHOW)
	@go test -count=1 -timeout 30m -run '^TestNesting$$' -v ./recipes/locks -nesting $(PART) | $(SHOW)
	@go test -count=1 -timeout 30m -run '^(TestCrowdsOfMultiLocks|TestCrowdsBesideOthers|TestCrowdsUnderLocksOfTheirOwn|TestCrowdsBesideAnotherLibrary|TestSearchSchedules|TestWorkForAGrant)$$' -v ./recipes/locks -crowds | $(SHOW)
	@part=$(PART); n=$$((20000 / $${part#*/})); go test -count=1 -timeout 1h -run '^TestNobodyIsStuck$$' -v ./recipes/locks -crowds -mixtures $$n -first $$((n * ($${part%/*} - 1))) | $(SHOW)
	@go test -count=1 -timeout 20m -run '^(TestSubscribersThatNeverRead|TestManyCachesOfOneClient|TestManyClients)$$' -v ./recipes/cache -crowds | $(SHOW)
	@go test -count=1 -timeout 20m -run '^TestRestartsOfAKeeper$$' -v ./internal/test/conformance -restarts 1000 | $(SHOW)

# They print what they measured, and take as long as one likes.
BREAKING := ^(TestMargin|TestHoldsAtADistance|TestNestingProcesses|TestBreak)$$

test-zk: ## on real ZooKeepers, one and three, which the tests start (needs what `.ci/run zookeeper` installs)
	@SUITES='TestStandalone TestEnsemble' .ci/gotest \
		-tags realzk $(RACE) -skip '$(BREAKING)|^(TestInProcess|TestSecureEnsemble$$)' -shuffle=on -count=1 -p 1 -timeout 30m $(ZK_PACKAGES)
	@cd examples/oncall && go mod tidy -diff && $(LINT) run --build-tags realzk && go test -tags realzk -count=1 -timeout 5m . $(if $(ARGS),-args $(ARGS))

test-interop: ## in one queue with Curator, kazoo and zk.Lock (needs a JDK, libcurator-recipes-java, python3-kazoo); ARGS=-crowds lets crowds beside Java go on for longer
	@.ci/gotest -tags interop $(RACE) -count=1 -timeout 10m -parallel 8 ./internal/test/interop $(if $(ARGS),-args $(ARGS))

test-sasl: ## the cases on real ZooKeepers as a user of SASL's DIGEST-MD5: on one, and on three that let in nobody else, over TLS (needs Java)
	@SUITES='TestStandalone TestSecureEnsemble' .ci/gotest -tags realzk $(RACE) -run '^Test(Standalone|SecureEnsemble)$$' -count=1 -timeout 10m ./internal/test/conformance -args -sasl

test-kerberos: ## Kerberos: a KDC, real ZooKeepers and Java's Curator, and the cases on three over TLS (needs what test-interop needs, krb5-kdc, krb5-admin-server, krb5-user)
	@cd framework/sasl/kerberos && $(LINT) run --build-tags realzk && go test -tags realzk $(RACE) -count=1 -timeout 10m . $(if $(ARGS),-args $(ARGS))

# Modules of their own, so that a database driver and a scheduler are no dependencies of ours.
test-examples: ## modules of their own: fenced data, a scheduler's jobs, a recipe, metrics, scripts of the command, other retries (fetches modules)
	@for module in examples/fencing examples/gocron examples/recipe framework/monitor/monitorprom framework/monitor/monitorotel framework/sasl/kerberos internal/test/command internal/test/retries; do \
		echo $$module; (cd $$module && go mod tidy -diff && $(LINT) run && go test $(RACE) -shuffle=on ./...); \
	done

test-page: ## the page of locks in a browser (needs Chromium); ARGS=-update renews the pictures in docs/pictures
	@cd internal/test/browser && go test $(RACE) -count=1 -timeout 5m . $(if $(ARGS),-args $(ARGS))

test-secrets: ## every case with a marked password, by digest and by SASL, everything logged: it is told nowhere
	@out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	if ! go test -count=1 -timeout 10m -run '^TestInProcess(Cluster)?$$' -v ./internal/test/conformance -secrets >"$$out" 2>&1; then \
		grep -vE '^ *(=== |--- (PASS|SKIP))' "$$out" | tail -n 80; exit 1; \
	fi; \
	if grep -qi canaryofthewhole "$$out"; then echo "the tests themselves print the password"; exit 1; fi; \
	grep '^secrets: ' "$$out"

cover: ## coverage of framework and of each package of recipes by their tests and the cases on the in-process server: 95 % at least
	@.ci/cover 95 framework recipes/...

fuzz: ## each fuzz target for TIME (1m)
	@.ci/fuzz $(TIME)

vuln: ## known vulnerabilities (needs the network)
	@$(TOOL) govulncheck -test ./...

weigh: ## count lines of each package, fields of structs, and the functions that an Acquire, a Release and a Create run
	@go run ./internal/test/weigh

#: Releases

# What docs/releasing.md tells.
release-check: ## rehearse the release VERSION of all modules in a clone, with the oldest and the newest Go (fetches both, and modules)
	@cd tools && go test ./release && go run ./release -version '$(VERSION)' $(ARGS)

release-binaries: ## build the commands of VERSION, which is tagged, for the common systems into bin/VERSION, with checksums
	@cd tools && go run ./release -version '$(VERSION)' -binaries '../bin/$(VERSION)'

release-prepare: ## set the versions of all modules to VERSION, and the heading in CHANGELOG.md
	@cd tools && go run ./release -version '$(VERSION)' -prepare

#: Looking for mistakes

# Without the race detector, which makes the scheduler choose at random.
sim: ## clients, faults and checkers in virtual time, SEEDS (1000) of them; SEED=n tells the story of one, FAULTS=1,2,3 with these only
	@cd internal/test/simulation && go test -count=1 -timeout 0 -v -run '^TestSeeds$$' . -args \
		$(if $(SEED),-seed $(SEED) -faults '$(FAULTS)',-seeds $(SEEDS) -workers $$(nproc)) $(ARGS)

faults: ## plant bugs, one at a time: the tests must find each (ONLY=row or part of a name, PART)
	@go run ./internal/test/faults -part $(PART) $(if $(ONLY),-only '$(ONLY)') $(ARGS)

break: ## break real ensembles under processes for TIME (1m), every second one of the commit OLD if given (needs Java)
	@$(if $(OLD),.ci/old-test '$(OLD)' '(robustness|endurance)' bin/old.test realzk)
	@go test -tags realzk $(if $(OLD),,$(RACE)) -count=1 -timeout 0 $(if $(OLD),,-parallel 8) -v \
		-run '$(if $(OLD),^(TestManyProcesses|TestOppositeMultiLocks|TestNestingProcesses|TestBreak)$$,$(BREAKING))' ./internal/test/robustness \
		-args -break $(TIME) $(if $(OLD),-old $(CURDIR)/bin/old.test) $(ARGS)

break-caches: ## break a real ensemble under caches for TIME (1m), and judge each snapshot by the servers' logs (needs Java)
	@go test -tags realzk $(RACE) -count=1 -timeout 0 -v -run '^TestCachesByTheLogs$$' ./internal/test/robustness -args -caches $(TIME) $(ARGS)

break-fleet: ## end real servers under FLEET (1000) clients, and print how long it takes until all are back (needs Java); ARGS=-fleet-secure: over TLS and SASL, ARGS=-fleet-java: under clients of Java
	@go test -tags realzk -count=1 -timeout 0 -v -run '^TestFleet$$' ./internal/test/robustness -args -fleet $(or $(FLEET),1000) $(ARGS)

#: Speed

bench: ## locks next to zk.Lock and raw create+delete, ONLY some, or all for docs/bench.md (needs Java); or, in turns, the benchmarks of the commit OLD and ours
ifndef OLD
	@mkdir -p bin && go run ./internal/test/bench $(if $(ONLY),-only '$(ONLY)') $(ARGS) >bin/bench.txt
	@$(if $(ONLY)$(ARGS),:,cd tools && go test ./plots && go run ./plots -page ../docs/bench.md ../bin/bench.txt)
	@$(TOOL) benchstat -table server,group -row /clients -col /of bin/bench.txt
else # in process, or ZK_CONNECT_STRING=host:port; the server's allocations are among them
	@rm -f bin/old.txt bin/new.txt
	@.ci/old-test '$(OLD)' bench bin/old.test
	@go test -c -o bin/new.test ./internal/test/bench
	@for which in old new new old old new new old old new new old old new new old old new new old; do \
		bin/$$which.test -test.run '^$$' -test.bench '$(or $(ONLY),.)' -test.benchtime 200ms $(ARGS) | sed '/^pkg: /d' >>bin/$$which.txt; \
	done
	@$(TOOL) benchstat bin/old.txt bin/new.txt
endif

compare-caches: ## our cache beside Curator's and kazoo's on a real server (what test-interop needs); ARGS='-do load -nodes 100000 -shape deep -delay 1ms'
	@go run ./internal/test/bench/caches $(ARGS)
