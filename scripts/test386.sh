#!/usr/bin/env bash
# Runs the tests of the root module as a 32-bit program: by itself where the system can, else in qemu-i386, which is installed when absent.
set -euo pipefail

gate=$(mktemp -d)
trap 'rm -rf "$gate"' EXIT
go build -o "$gate/testgate" ./scripts/testgate

export GOARCH=386 CGO_ENABLED=0
probe='{"Action":"pass","Package":"p","Test":"T"}'
exec=()
if ! go run ./scripts/testgate <<<"$probe" >/dev/null 2>&1; then
	bash "$(dirname "${BASH_SOURCE[0]}")/deps.sh" qemu-i386
	# The emulator keeps one table of thread-local storage for all threads. A thread that sets its own up, or comes back from a signal, while
	# another does so gets the other's: the runtime then dies with "morestack on g0" or the like, most often as it starts. So no signals for
	# preemption, and one thread at a time.
	export GODEBUG=asyncpreemptoff=1 GOMAXPROCS=1
	exec=(-exec qemu-i386)
fi
go test -json -count=1 -timeout=15m "${exec[@]}" ./... | "$gate/testgate"
