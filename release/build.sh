#!/usr/bin/env bash
# Makes what is given away, from one machine with Go and Python: for each system a program and a
# wheel, and completions, man pages, a list of all modules (CycloneDX), checksums.
#   release/build.sh DIR [SYSTEM/PROCESSOR ...]    default: all four
# Two builds of one commit with one Go give the same programs. Only linux/amd64 is tested whole;
# docs/releasing.md says what ran on the others.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^# \{0,1\}//p' "$0" | sed 1d; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/arm64 darwin/amd64
cd "$(dirname "$0")/.."
left=$(git status --porcelain)
[ -z "$left" ] || { echo "commit first, these files are not in the commit:"; echo "$left"; exit 1; }
[ -z "$(ls -A "$out")" ] || { echo "$out is not empty: name a new folder"; exit 1; }

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# The commit stands in the program (gdb version), so flags of the environment must not drop it.
export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=true'
build() { go build -ldflags='-s -w' "$@" ./cmd/gdb; }
sbom=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0

echo "man pages and completions"
mkdir "$tmp/man" "$out/man" "$out/completions"
build -tags man -o "$tmp/man/gdb" # pages and completions are for the name that it has
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) "$tmp/man/gdb" man "$out/man"
for shell in bash zsh fish powershell; do
  "$tmp/man/gdb" completion "$shell" >"$out/completions/gdb.$shell"
done
version=$("$tmp/man/gdb" version | cut -d' ' -f2)

python3 -m venv "$tmp/venv"
"$tmp/venv/bin/python" -m pip install -q --disable-pip-version-check 'setuptools>=70.1' wheel

# tag names the systems that a wheel is for. The program is static: it runs with any libc.
tag() {
  case $1 in
  linux/amd64) echo manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64 ;;
  linux/arm64) echo manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64 ;;
  darwin/arm64) echo macosx_12_0_arm64 ;;
  darwin/amd64) echo macosx_12_0_x86_64 ;;
  *) echo "release/build.sh: $1: no wheels are made for it" >&2 && return 1 ;;
  esac
}

for system; do
  wheel=$(tag "$system")
  name=gdb-$version-${system%/*}-${system#*/}
  echo "$name"
  GOOS=${system%/*} GOARCH=${system#*/} build -o "$out/$name"
  (cd "$tmp" && GOFLAGS= GOOS= GOARCH= go run "$sbom" bin -json -output "$out/$name.cdx.json" "$out/$name")
  rm -rf "$tmp/python"
  cp -r python "$tmp/python"
  (cd "$tmp/python" && GDB_BINARY="$out/$name" "$tmp/venv/bin/python" setup.py -q bdist_wheel \
    --plat-name "${wheel%%.*}" --dist-dir "$tmp/wheel" &&
    "$tmp/venv/bin/python" -m wheel tags --remove --platform-tag "$wheel" "$tmp"/wheel/*.whl) \
    >"$tmp/wheel.log" 2>&1 || { cat "$tmp/wheel.log"; exit 1; }
  mv "$tmp"/wheel/*.whl "$out"
done
cp release/Containerfile LICENSE "$out"
(cd "$out" && find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
echo "checksums in $out/SHA256SUMS"
