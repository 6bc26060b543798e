#!/usr/bin/env bash
# fuzz.sh TIME: run every fuzz target of the repository for TIME each.
set -euo pipefail
cd "$(dirname "$0")/../.."
grep -rl --include='*_test.go' 'func Fuzz' . | while read -r file; do
  grep -o 'func Fuzz[A-Za-z0-9_]*' "$file" | cut -c6- | while read -r target; do
    echo "== $(dirname "$file") $target"
    go test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$1"
  done
done
