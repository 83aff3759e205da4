#!/usr/bin/env bash
# Runs every fuzz target of every module for FUZZTIME each: a time such as 10s, or a number of inputs such as 10000x.
set -euo pipefail

fuzztime=${FUZZTIME:-10s}
tests='{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}'
files=$(go list -f "$tests" work)
found=0
while read -r package file; do
	[ -n "$file" ] || continue
	for target in $({ grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" || true; } | cut -c6-); do
		found=$((found + 1))
		echo "$package $target"
		go test -run "^$target\$" -fuzz "^$target\$" -fuzztime "$fuzztime" -timeout 10m "$package" </dev/null
	done
done <<<"$files"
echo "$found fuzz targets ran for $fuzztime each."
