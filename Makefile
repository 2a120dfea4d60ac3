# make help lists the targets.
SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO       := go
BINARY   := bin/gpuscope
PROMPT   := Once upon a time
TOKENS   := 48
FUZZTIME := 10m

# Limits of each go test process: with no kernel cached all tests of ops take a slow machine 15 minutes. Two
# packages at a time: the GPU tests share one device. -shuffle runs tests in any order: a package that fails
# prints the seed of its order. make vet has run go vet, so go test does not.
TESTFLAGS := -p 2 -timeout 30m -vet=off -shuffle=on
# The packages that take longest are first, so that none of them runs alone at the end.
PKGS      := ./ops ./model ./tui ./...
# With -short each test of random cases or of a grid of kernels takes a part of them.
SHORTFLAGS := -short $(TESTFLAGS)
# The race detector covers everything but GPU arithmetic.
RACEFLAGS := -race $(SHORTFLAGS)
RACEPKGS   = $$($(GO) list $(PKGS) | grep -vE '^gpuscope/(ops|shaders|engine/gpu/(wgpu|gputest))$$')
# Without -shuffle go test takes the results of packages that did not change from its cache.
QUICKFLAGS := -short -vet=off -timeout 10m
# Each process of the race detector sleeps as it ends, for what goroutines still report: by default a second.
export GORACE := atexit_sleep_ms=50 $(GORACE)
# Where git refuses to read this clone (another user's, or no clone at all), go would refuse to build.
ifneq ($(shell git rev-parse --is-inside-work-tree 2>/dev/null),true)
export GOFLAGS += -buildvcs=false
endif

.PHONY: help demo build vulkan test test-all test-formats quick systems vet lint unit race fuzz bench \
	bench-ui test-large fmt

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: vulkan build ## open the embedded model in the TUI; without a terminal, run it and print its profile
	@if [ -t 0 ] && [ -t 1 ]; then exec $(BINARY); else exec $(BINARY) run -p "$(PROMPT)" -n $(TOKENS); fi

build: ## build bin/gpuscope
	@$(GO) build -o $(BINARY) ./cmd/gpuscope

vulkan: # find or install a Vulkan driver
	@scripts/vulkan.sh

test: vulkan vet ## format, go vet and the tests, GPU tests included
	$(GO) run ./internal/testsum $(SHORTFLAGS) $(PKGS)

test-all: vulkan lint systems ## what test leaves out: staticcheck, other systems, all cases, races
	$(GO) run ./internal/testsum $(TESTFLAGS) $(PKGS) -- $(RACEFLAGS) $(RACEPKGS)

test-formats: ## open exported traces in the programs that they are for; installs these programs
	scripts/test-formats.sh

quick: ## the tests without GPU arithmetic, of changed packages
	@GPUSCOPE_TEST_GPU=off $(GO) run ./internal/testsum $(QUICKFLAGS) $(PKGS)

# Other systems share no package with the tests: not optimized they take a third less to compile.
systems: ## build without cgo for every system: that program opens traces and plans models
	@for os in linux windows darwin freebsd; do \
		echo "CGO_ENABLED=0 GOOS=$$os go build ./..."; \
		[ $$os = "$$($(GO) env GOHOSTOS)" ] && fast= || fast='-gcflags=all=-N -l'; \
		CGO_ENABLED=0 GOOS=$$os $(GO) build $${fast:+"$$fast"} -o /dev/null ./... || exit 1; \
	done

vet: # formatting and go vet, which share their packages with the tests
	@wrong=$$($(GO) tool -modfile=tools/go.mod gofumpt -l .); \
		[ -z "$$wrong" ] || { echo "not gofumpt-ed (make fmt):" $$wrong; exit 1; }
	@$(GO) run ./internal/columns
	$(GO) vet ./...
	$(GO) -C examples/traces vet ./...

lint: vet ## gofumpt, lines of at most 110 columns, go vet, staticcheck
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

unit: ## all kernels and random cases, without the race detector
	@$(GO) run ./internal/testsum $(TESTFLAGS) $(PKGS)

race: ## the tests under the race detector, GPU numerics left out
	@$(GO) run ./internal/testsum $(RACEFLAGS) $(RACEPKGS)

fuzz: ## every fuzz target, FUZZTIME (10m) each
	@$(GO) list ./... | while read -r package; do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x \
				$$package; \
		done; \
	done

bench-ui: ## what the screen takes: a frame (8 ms), a long trace (3 s, 300 MB), 10 % of a core beside a model
	$(GO) test -run '^$$' -bench UpdateView/steps -benchtime 50x ./tui
	$(GO) test -run '^$$' -bench UpdateView/dispatches -benchtime 2x ./tui
	$(GO) test -run '^$$' -bench OpenTrace -benchtime 3x ./cmd/gpuscope
	$(GO) test -run '^$$' -bench Beside -benchtime 1x ./cmd/gpuscope

bench: ## every benchmark
	$(GO) test -p 1 -run '^$$' -bench . -benchmem ./...

test-large: vulkan ## the shapes too large for a software device; wants a real GPU
	@GPUSCOPE_LARGE=1 $(GO) run ./internal/testsum -p 1 -timeout 1h ./ops/... ./engine/... ./model/...

fmt: ## format with gofumpt
	$(GO) tool -modfile=tools/go.mod gofumpt -l -w .
