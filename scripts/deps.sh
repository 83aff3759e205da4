#!/usr/bin/env bash
# Installs what the tests need and this system lacks: redis-server, nginx, caddy and haproxy for the forward-auth tests, and a C compiler for the
# race detector. Given the name of a program, it sees to that one instead.
set -euo pipefail

PATH=$PATH:/usr/sbin # where Debian has nginx, and users without privileges do not look
missing=()
need() { # program, packages of Debian that bring it
	command -v "$1" >/dev/null || missing+=("${@:2}")
}
case ${1:-} in
"")
	read -r compiler _ < <(go env CC)
	need "${REDISTEST_SERVER:-redis-server}" redis-server
	need "$compiler" gcc libc6-dev
	need nginx nginx-light
	need caddy caddy
	need haproxy haproxy
	;;
qemu-i386) need qemu-i386 qemu-user ;;
*)
	echo "deps.sh: do not know how to install $1" >&2
	exit 2
	;;
esac
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "The tests need ${missing[*]}: install it with the package manager of this system, then run make again." >&2
	echo "Redis is needed in version 6.2 or newer; REDISTEST_SERVER may name another program, such as valkey-server." >&2
	exit 1
fi
root=()
if [ "$(id -u)" -ne 0 ]; then
	root=(sudo)
	if ! command -v sudo >/dev/null; then
		echo "The tests need ${missing[*]}: run apt-get install ${missing[*]} as root, then make again." >&2
		exit 1
	fi
fi
echo "Installing ${missing[*]}."
"${root[@]}" apt-get update -q
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
