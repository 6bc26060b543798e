#!/usr/bin/env bash
# Tests gdb on this machine's GPU, compares it with the CPU and measures what docs/cuda.md has lines
# for, in under 8 minutes and without a network. It prints a table, and leaves it as JSON.
#
#   bench/gpu.sh --pack           build here, for a machine without Go: bin/gpu.tar.gz
#   bench/gpu.sh [--small] [--seconds 470] [--triples fb15k-237] [--out bin/gpu-results]
#
# --triples is a folder of FB15k-237, for the line of links. What is run is built here, or unpacked from bin/gpu.tar.gz. Graphs are made by gdb bench gen.
# Without a GPU the emulated device of the tests takes its place, with small graphs: then figures
# say that the script works, and nothing of a device.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
root=$PWD small=0 limit=470 out=$root/bin/gpu-results pack=0 triples=
while [ $# -gt 0 ]; do
  case $1 in
    --pack) pack=1 ;;
    --small) small=1 ;;
    --triples) triples=$(cd "$2" && pwd); shift ;;
    --seconds) limit=$2; shift ;;
    --out) mkdir -p "$2" && out=$(cd "$2" && pwd); shift ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift
done
tests="internal/cuda compute/backend/cuda train train/link"

build() {
  command -v go >/dev/null && { command -v gcc || command -v clang; } >/dev/null || return 1
  mkdir -p bin/gpu
  export CGO_ENABLED=1 CGO_CFLAGS="-I$root/internal/cuda/include ${CGO_CFLAGS:-}"
  go build -tags cuda -ldflags "-s -w" -o bin/gpu/gdb ./cmd/gdb || return 1
  for p in $tests; do
    go test -c -tags cuda -ldflags "-s -w" -o "bin/gpu/${p//\//-}.test" "./$p" || return 1
  done
}

if [ $pack = 1 ]; then
  build && tar -czf bin/gpu.tar.gz -C bin gpu && ls -l bin/gpu.tar.gz
  exit
fi

say() { printf '== %s (%ss)\n' "$*" "$SECONDS"; }
rows=() emulated=no
# line NAME FIGURE WANTED HELD adds a line of the table; HELD is yes, no or - for no figure wanted,
# or none that an emulated device could hold.
line() {
  [ $emulated = no ] || [ "$3" = pass ] || [[ $1 == *losses* || $1 == *accuracy* ]] || set -- "$1" "$2" "$3" -
  rows+=("$1"$'\t'"$2"$'\t'"$3"$'\t'"$4")
  printf '%s: %s (wanted: %s; held: %s)\n' "$@"
}
# left is the seconds that are left. run CMD... runs a command within them, its output to the log.
left() { echo $((limit - SECONDS)); }
run() {
  [ "$(left)" -gt 5 ] || { echo "no time is left for: $*" | tee -a "$out/log"; return 1; }
  echo "\$ $*" >>"$out/log"
  timeout "$(left)" "$@" >>"$out/log" 2>&1
}
# value KEY reads JSON from a line on standard input: the last number or string of that key.
value() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^,"}]*\).*/\1/p' | tail -1; }
# judge A OP B says yes or no, and no of what is no number.
judge() { awk -v a="$1" -v b="$3" "BEGIN{print (a ~ /^-?[0-9.]/ && a+0 $2 b+0) ? \"yes\" : \"no\"}"; }
# must NAME FIGURE OP WANTED is a line of a figure that has to hold: a new row is one of these behind
# the training that it is of.
must() { line "$1" "$2" "$3 $4" "$(judge "$2" "$3" "$4")"; }
math() { awk "BEGIN{printf \"%.4g\", $1}" 2>/dev/null || echo -; }

mkdir -p "$out" && : >"$out/log" || exit
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gdb-gpu-XXXXXX") || exit
making=
trap '[ -z "$making" ] || kill $making 2>/dev/null; rm -rf "$scratch"' EXIT

say build
if build >>"$out/log" 2>&1; then built="here"
elif [ -f bin/gpu.tar.gz ] && tar -xzf bin/gpu.tar.gz -C bin; then built="from bin/gpu.tar.gz"
else echo "there is no Go with a C compiler here, and no bin/gpu.tar.gz: see --pack"; exit 1
fi
gdb=$root/bin/gpu/gdb
line "binary" "$built" "-" "-"

device=$("$gdb" bench device --json 2>>"$out/log")
if ! grep -q '"why":null' <<<"$device"; then
  echo "no GPU: $(value why <<<"$device")"
  cxx=$(command -v g++ || command -v clang++) || { echo "and no C++ compiler to emulate one"; exit 1; }
  emulated=yes small=1 e=internal/cuda
  names=$(sed -n 's/^KERNEL(\([a-z0-9_]*\)).*/K(\1) /p' compute/backend/cuda/kernels/*.cu | tr -d '\n')
  say "building the emulated device"
  run "$cxx" -std=c++17 -O2 -fPIC -shared -I$e/include -I$e/emu "-DEMU_KERNEL_NAMES=$names" \
    "-DEMU_KERNELS=\"$root/compute/backend/cuda/kernels/kernels.cu\"" $e/emu/emu.cpp \
    $e/emu/kernels.cpp -o "$scratch/emu.so" || { echo "it cannot be built: see $out/log"; exit 1; }
  export GDB_LIBCUDA=$scratch/emu.so GDB_LIBCUBLAS=$scratch/emu.so
  device=$("$gdb" bench device --json 2>>"$out/log")
  line "device" "emulated: figures say nothing of a GPU" "-" "-"
else
  export GDB_TEST_CUDA=device
  line "device" "$(value name <<<"$device"), $(nproc) cores" "-" "-"
fi
echo "$device" >>"$out/log"

# The graphs, and what trains on them.
if [ $small = 1 ]; then
  # R-MAT of this size has batches too uneven for padding: the first graph has even degrees.
  scale1=11 kind1="sbm --edges 65536 --classes 8" name1="block model 2^11" dim1=32
  scale2=11 edges2=20000 dim2=64 frac2=0.1
  shape="--hidden 16 --fanout 3,3,3 --batch 10 --memory 256MiB" roomy=256MiB tight=128MiB cache2=64KiB
else
  scale1=20 kind1="rmat --edges 16777216" name1="R-MAT 2^20" dim1=128
  scale2=22 edges2=64e6 dim2=256 frac2=0.01
  shape="--hidden 256 --fanout 10,10,10 --batch 1000 --memory 16GiB" roomy=16GiB tight=1GiB cache2=2GiB
fi
graph() { # graph NAME MEMORY KIND... makes a store
  local name=$1 memory=$2
  shift 2
  "$gdb" bench gen "$@" --out "$scratch/$name" --quiet &&
    "$gdb" ingest "$scratch/$name" --out "$scratch/$name.gdb" --memory "$memory" --quiet &&
    { [ "$name" = "$kept" ] || rm -rf "${scratch:?}/$name"; }
}
# kept are the arrays that PyTorch reads too, where it is and finds the device.
kept=
[ $emulated = no ] && python3 -c 'import torch; torch.zeros(1, device="cuda")' 2>>"$out/log" && kept=r1
{ graph r1 $roomy $kind1 --scale $scale1 --dim $dim1 &&
  graph r2 $roomy rmat --scale $scale2 --edges $edges2 --dim $dim2 --train-frac $frac2; } \
  >>"$out/log" 2>&1 &
making=$!
# Cora is in the program.
run "$gdb" demo --dir "$scratch/demo" --quiet && mv "$scratch/demo/cora.gdb" "$scratch" ||
  echo "the graph to compare on could not be made: see $out/log"

# train NAME STORE FLAGS... trains three epochs or so on the device; its epochs are in NAME.json.
train() {
  local name=$1 store=$2
  shift 2
  [ "$(left)" -gt 5 ] || { echo "no time is left for the training $name"; return 1; }
  echo "\$ gdb train $store $*" >>"$out/log"
  timeout "$(left)" "$gdb" train "$scratch/$store.gdb" --backend cuda --model sage --dropout 0 \
    --eval-mode sampled --eval-every 100 --json --run "$name" "$@" \
    >"$out/$name.json" 2>>"$out/log" || { echo "the training $name failed: see $out/log"; return 1; }
}
epoch() { grep '"batches"' "$out/$1.json" | tail -1; } # the last one

say tests
for p in $tests; do
  flags=
  [ "$p" = train ] && flags='-test.run=OnDevice$|CheckpointsMove'
  [ "$p" = train/link ] && flags='-test.run=LinksOnDevice|DeviceRepeats'
  [ $emulated = yes ] && [ "$p" != internal/cuda ] && flags='-test.run=Grouped|RowsBefore|TestHalves'
  if (cd "$p" && run "$root/bin/gpu/${p//\//-}.test" -test.timeout 3m $flags); then held=yes; else held=no; fi
  line "tests of $p" "$([ $held = yes ] && echo pass || echo FAIL)" pass $held
done

say "the same on the CPU"
for model in sage gcn gat gatv2 gin sgc mlp; do
  test=()
  for on in cpu cuda; do
    train $model-$on cora --backend $on --model $model --hidden 16 --fanout 5,5 --batch 20 --epochs 3 \
      --dropout 0.5 --memory 1GiB &&
      test+=("$("$gdb" eval "$scratch/cora.gdb" --run $model-$on --backend $on --json \
        2>>"$out/log" | tr -d " \n" | value value)")
  done
  most=$(paste <(grep '"batches"' "$out/$model-cpu.json" | sed 's/.*"loss":\([^,]*\).*/\1/') \
    <(grep '"batches"' "$out/$model-cuda.json" | sed 's/.*"loss":\([^,]*\).*/\1/') |
    awk '{d=$1-$2; if(d<0)d=-d; if(d>m)m=d; n++} END{if(n==3) print m+0; else print "-"}')
  must "$model: losses of 3 epochs beside the CPU's differ by" "$most" "<=" 0.001
  apart=$(math "sqrt((${test[0]:--1}-${test[1]:-9})^2)")
  line "$model: accuracy on the test split of Cora, CPU and device" "${test[0]:--} ${test[1]:--}" \
    "+-0.005" "$(judge "$apart" '<=' 0.005)"
done

say "rows in the device's memory"
device=$("$gdb" bench device --json 2>>"$out/log")
for what in gather mean; do
  share=$(value ${what}_share <<<"$device")
  must "$what of rows of 128 floats, share of the copy bandwidth" "$share" ">=" 0.7
done
line "copies in the device's memory, bytes/s" "$(value inner_bytes_per_s <<<"$device")" "-" "-"
line "copies to the device, bytes/s" "$(value copy_bytes_per_s <<<"$device")" "-" "-"

say "making the graphs"
wait $making || echo "a graph could not be made: see $out/log"
making=

say "$name1"
if train all r1 $shape --epochs 4; then
  time=$(epoch all | value time) busy=$(epoch all | value device_busy_s)
  share=$(math "$busy/$time") batches=$(epoch all | value batches)
  must "$name1 x $dim1, $batches batches, sage, s an epoch" "$time" "<=" 0.16
  must "device busy, share of the epoch" "$share" ">=" 0.5
  line "rows found on the device" "$(epoch all | value device_hit)" "-" "-"
  calls=$(epoch all | value calls)
  if train one-by-one r1 $shape --epochs 4 --plain-launches; then
    plain=$(epoch one-by-one | value calls)
    line "launches a step, with --plain-launches" \
      "$(math "$calls/$batches") $(math "$plain/$batches")" "-" "-"
    line "ms a step, with --plain-launches" "$(math "1000*$time/$batches") $(math \
      "1000*$(epoch one-by-one | value time)/$batches")" "-" "-"
  fi
  train tf32 r1 $shape --epochs 4 --precision tf32 &&
    line "s an epoch with --precision tf32" "$(epoch tf32 | value time)" "-" "-"
  train bf16 r1 $shape --epochs 4 --precision bf16 &&
    must "s an epoch with --precision bf16" "$(epoch bf16 | value time)" "<=" 0.13
  if [ -n "$kept" ]; then
    run python3 bench/peers/torchgpu.py "$scratch/$kept" --out "$out/torch.json" &&
      must "a plain PyTorch loop, all on the device: its s an epoch by gdb's" \
        "$(math "$(value seconds <"$out/torch.json")/$time")" ">=" 4
  else
    line "a plain PyTorch loop" "no PyTorch with CUDA here" "-" "-"
  fi
fi
train gat r1 $shape --epochs 4 --model gat --heads 4 && {
  must "gat, 4 heads, s an epoch" "$(epoch gat | value time)" "<=" 0.30
  line "of it the device works" "$(epoch gat | value device_busy_s)" "-" "-"
}

say "the bus"
sent() { math "$(epoch "$1" | value sent_bytes)/$(epoch "$1" | value batches)"; }
bytes=$(((1 << scale1) * dim1 * 4))
for percent in 0 10 20 40; do
  train bus$percent r1 $shape --epochs 2 --device-cache $((bytes / 100 * percent)) &&
    line "bytes sent a batch, $percent % of rows on the device" "$(sent bus$percent)" "-" "-"
done

say "R-MAT 2^$scale2"
train everything r2 $shape --epochs 3 --memory $roomy &&
  train little r2 $shape --epochs 3 --memory $tight --device-cache $cache2 && {
  all=$(epoch everything | value time) some=$(epoch little | value time)
  ratio=$(math "$some/$all")
  line "R-MAT 2^$scale2 x $dim2, s an epoch with all rows on the device" "$all" "-" "-"
  line "the same, $tight of the host and $cache2 of the device" "$some" "-" "-"
  must "ratio of the two" "$ratio" "<=" 1.5
  bus=$(tr -d ' \n' <"$scratch/r2.gdb/runs/little/run.json")
  line "its rows are read in place; ms to copy, send, read them in a trial" "$(value in_place <<<"$bus") $(math \
    "1000*$(value copy_s <<<"$bus")") $(math "1000*$(value send_s <<<"$bus")") $(math \
    "1000*$(value read_s <<<"$bus")")" "-" "-"
}

[ -n "$triples" ] && say "links" && run "$gdb" ingest "$triples" --out "$scratch/links.gdb" --quiet && {
  for on in cpu cuda; do
    run "$gdb" train "$scratch/links.gdb" --task link --decoder distmult --dim 100 --negatives 32 \
      --epochs 3 --eval-every 3 --backend $on --run links-$on --quiet
    took[${#took[@]}]=$(tail -1 "$scratch/links.gdb/runs/links-$on/metrics.jsonl" | value time)
  done
  ratio=$(math "${took[0]}/${took[1]}")
  line "FB15k-237 distmult 100, 32 negatives, s an epoch; times faster than the CPU" \
    "${took[1]}; $ratio" ">= 5" "$(judge "$ratio" '>=' 5)"
}

[ $emulated = no ] && command -v nvidia-smi >/dev/null && nvidia-smi >>"$out/log" 2>&1
must "seconds in all" "$SECONDS" "<=" 480
say result
{
  printf '{"emulated":%s,"lines":[' "$([ $emulated = yes ] && echo true || echo false)"
  for i in "${!rows[@]}"; do
    IFS=$'\t' read -r name figure wanted held <<<"${rows[i]}"
    [ "$i" = 0 ] || printf ','
    printf '\n{"what":"%s","figure":"%s","wanted":"%s","held":"%s"}' "${name//\"/}" "${figure//\"/}" \
      "$wanted" "$held"
  done
  printf ']}\n'
} >"$out/gpu.json"
for row in "${rows[@]}"; do
  IFS=$'\t' read -r name figure wanted held <<<"$row"
  printf '%-68s %-28s %-9s %s\n' "$name" "$figure" "$wanted" "$held"
done
echo "$out/gpu.json, and the log beside it"
# On a GPU a line that was not held is the script's failure; an emulated one has no figures to hold.
[ $emulated = yes ] || ! printf '%s\n' "${rows[@]}" | grep -q $'\tno$'
