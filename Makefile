# `make` alone says what there is.

SHELL := /bin/bash
GO ?= go
export CGO_ENABLED ?= 0
export GOTOOLCHAIN ?= local

VERSION := $(shell git describe --always --dirty 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION)
PREFIX ?= /usr/local

# clang by its version, so that everyone generates the same objects. -g for BTF; the include folder has <asm/types.h>.
export BPF2GO_CC := clang-19
export BPF2GO_STRIP := llvm-strip-19
export BPF2GO_CFLAGS := -O2 -g -Wall -Werror -mcpu=v3 -I/usr/include/$(shell uname -m)-linux-gnu

.PHONY: help
help:
	@echo "make build            build bin/bench, one static binary"
	@echo "make run              build it and measure hash map lookups on this kernel, or in a guest"
	@echo "make test             run all the tests that this machine can run, and install what they need (Debian and kin)"
	@echo "make test-vm          those in guests only, on three kernels or on KERNELS=DIR,FILE"
	@echo "make lint             gofmt, go vet, staticcheck, shellcheck"
	@echo "make generate         compile the BPF programs anew"
	@echo "make check-generate   do their objects match their sources?"
	@echo "make kernels          fetch the kernels that guests boot"
	@echo "make install          install bench in PREFIX/bin ($(PREFIX)/bin)"
	@echo "make clean            remove what was built"

.PHONY: build
build:
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/bench ./bench

.PHONY: run
run: build
	scripts/run

.PHONY: tools
tools:
	scripts/install-tools

.PHONY: test
test: tools
	-$(MAKE) --no-print-directory kernels
	$(GO) run ./internal/tier

# Other kernels: make test-vm KERNELS=DIR,FILE
.PHONY: test-vm
test-vm: tools $(if $(KERNELS),,kernels)
	$(GO) run ./internal/tier -stages guests,cpus $(if $(KERNELS),-kernels "$(KERNELS)")

.PHONY: lint
lint: tools
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "gofmt would change: $$bad"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	shellcheck .ci/run $$(git ls-files scripts)

.PHONY: generate
generate: tools
	$(GO) generate ./progs
	$(GO) generate ./bench

.PHONY: check-generate
check-generate: generate
	@git diff --exit-code --stat -- progs || { echo "the objects in progs/ do not match their sources: commit what 'make generate' makes"; exit 1; }

.PHONY: cross
cross:
	GOARCH=amd64 $(GO) build -trimpath -o /dev/null ./bench
	GOARCH=arm64 $(GO) build -trimpath -o /dev/null ./bench

.PHONY: kernels
kernels:
	scripts/fetch-kernel bookworm trixie trixie-backports

.PHONY: install
install: build
	install -D -m 0755 bin/bench $(DESTDIR)$(PREFIX)/bin/bench

.PHONY: clean
clean:
	rm -rf bin
