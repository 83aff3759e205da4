SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# "work" is every package of every module in go.work.
TESTFLAGS ?= -race -count=1 -shuffle=on -timeout=10m
FUZZTIME ?= 10s
BENCH ?= .
TESTGATE := go run ./scripts/testgate
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help run build test test-386 fuzz bench bench-go cover lint deps clean ci

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## start the gateway on 127.0.0.1:8080, in memory, with two demo tenants; needs only Go
	@trap 'exit 0' INT; echo go run ./cmd/headgate serve; go run ./cmd/headgate serve

build: ## build the program, static, into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/headgate ./cmd/headgate

test: deps ## run all tests of all modules with the race detector; a skipped test fails
	go test -json $(TESTFLAGS) work | $(TESTGATE)

test-386: ## run the tests of the root module as a 32-bit program
	bash scripts/test386.sh

fuzz: deps ## run each fuzz target for FUZZTIME (10s)
	FUZZTIME=$(FUZZTIME) bash scripts/fuzz.sh

bench: deps ## measure Headgate beside its peers, in under 15 minutes; writes docs/benchmarks.md and its chart
	go run ./bench -out docs

bench-go: deps ## run the Go benchmarks that match BENCH (all)
	go test -run '^$$' -bench '$(BENCH)' -benchmem work

cover: deps ## say how much of the code the tests reach; the profile is bin/cover.out
	mkdir -p bin
	go test -coverpkg work -coverprofile bin/cover.out work
	go tool cover -func bin/cover.out | tail -n 1

lint: ## gofmt, go vet, staticcheck, govulncheck
	unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not in gofmt's form:" $$unformatted; exit 1; fi
	go vet work
	$(STATICCHECK) work
	bash scripts/vulncheck.sh

deps: ## install what the tests need: redis-server, nginx, caddy, haproxy, a C compiler
	@bash scripts/deps.sh

clean: ## remove what was built
	rm -rf bin

ci: ## everything that must hold before a change lands
	bash .ci/run
