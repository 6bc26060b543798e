#!/usr/bin/env bash
# Makes kernels.ptx of the kernels, with clang-19 and nothing of NVIDIA's: the same bytes on every
# machine. --check compares it with what is there instead.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v clang-19 >/dev/null; then
  echo "no clang-19 here: kernels.ptx is taken as it is"
  [ "${1:-}" = --check ] && exit 0 || exit 1
fi
to=$(mktemp)
trap 'rm -f "$to"' EXIT
# ptx75 is what drivers from 470 on read. Volta (sm_70) is the oldest device that is asked for.
clang-19 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 --cuda-feature=+ptx75 -nocudainc \
  -nocudalib -std=c++17 -O3 -Wall -Wextra -Werror -S -o "$to" kernels.cu
if [ "${1:-}" = --check ]; then
  cmp "$to" kernels.ptx || { echo "kernels.ptx is not what the kernels make: run $0"; exit 1; }
else
  cp "$to" kernels.ptx
fi
