#!/bin/sh
# Compiles the tests' kernels to PTX, by clang alone: go generate -tags cuda ./internal/cuda
cd "$(dirname "$0")"
exec clang++-19 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 --cuda-feature=+ptx75 \
  -nocudainc -nocudalib -O3 -S -o kernels.ptx kernels.cu
