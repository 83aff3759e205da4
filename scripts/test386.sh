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
	# Before version 8.1 the emulator keeps one table of thread-local storage for all threads. A thread that sets its own up while another does, or
	# that comes back from a signal, gets the other's, and the runtime dies: "morestack on g0", "syscall frame is no longer valid". So one thread at
	# a time, on one processor, and none of the signals that tests of networks raise: preemption, and writing where nobody reads.
	export GODEBUG=asyncpreemptoff=1 GOMAXPROCS=1
	cpus=$(taskset -cp $$)
	cpu=${cpus##* }
	exec=(-exec "taskset -c ${cpu%%[-,]*} env --block-signal=PIPE qemu-i386")
fi
go test -json -count=1 -timeout=15m "${exec[@]}" ./... | "$gate/testgate"
