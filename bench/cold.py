#!/usr/bin/env python3
"""Reads of two-hop neighborhoods from a cold start, beside the blocks that they need.

    cold.py STORE [--gdb ./gdb] [--memory 1GiB] [--anchors 1000] [--seed 1]

Asks for the neighbors of the neighbors of random nodes that have some, once in one statement and once in a statement
for each node, in a process that has read nothing yet; gdb reads past the page cache. Needed are the blocks in which
the lists of the anchors and of their neighbors lie, each once: which these are is worked out here from the index of
the file (docs/format/topology.md). Prints for both ways reads, needed blocks, their ratio, and seconds.
"""
import argparse
import array
import json
import random
import struct
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from pathlib import Path

PAGE, LEAF = 4096, 511


class Blocks:
    """Where each block of the in-lists begins: its first node, and the position in the list of that node."""

    def __init__(self, store):
        data = (Path(store) / "topology" / "in.idx").read_bytes()
        count = struct.unpack_from("<IIQQ", data, len(data) - PAGE)[3]
        self.first = array.array("Q")
        for page in range(PAGE, len(data) - PAGE, PAGE):
            pairs = array.array("I", data[page + 4:page + 4 + 8 * LEAF])
            self.first.extend(node << 32 | start for node, start in zip(pairs[::2], pairs[1::2]))
        del self.first[count:]

    def of(self, node):
        """The blocks of a node's list."""
        begin = bisect_right(self.first, node << 32) - 1
        end = bisect_left(self.first, (node + 1) << 32)
        return range(max(begin, 0), max(end, begin + 1))


def ask(args, statements):
    """The JSON answers to statements of one process, and its seconds."""
    text = ";\n".join(statements) + ";\n"
    begun = time.perf_counter()
    out = subprocess.run([args.gdb, "shell", args.store, "--mode", "json", "--quiet", "--memory", args.memory],
                         input=text, capture_output=True, text=True)
    if out.returncode:
        sys.exit(out.stderr)
    seconds, answers, at, decoder = time.perf_counter() - begun, [], 0, json.JSONDecoder()
    while at < len(out.stdout.rstrip()):
        answer, at = decoder.raw_decode(out.stdout, at)
        answers.append(answer)
        while out.stdout[at:at + 1].isspace():
            at += 1
    return answers, seconds


def neighborhoods(ids):
    return f"MATCH (a)<--(b)<--(c) WHERE id(a) IN {ids} RETURN id(a), count(DISTINCT c)"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store")
    p.add_argument("--gdb", default="gdb")
    p.add_argument("--memory", default="1GiB")
    p.add_argument("--anchors", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    info = json.loads(subprocess.run([args.gdb, "info", args.store, "--json"], capture_output=True, check=True).stdout)
    draw, anchors = random.Random(args.seed), {}
    while len(anchors) < args.anchors:
        some = sorted(draw.sample(range(info["nodes"]), 2 * args.anchors))
        for row in ask(args, [f"MATCH (a)<--(b) WHERE id(a) IN {some} RETURN id(a), collect(DISTINCT id(b))"])[0][0]:
            a, ends = row.values()
            if len(anchors) < args.anchors:
                anchors[a] = json.loads(ends) if isinstance(ends, str) else ends
    blocks = Blocks(args.store)
    needed = {b for a in anchors for b in blocks.of(a)}
    needed.update(b for ends in anchors.values() for node in ends for b in blocks.of(node))
    empty = ask(args, ["STATS IO"])[0][-1][0]["reads"]
    for way, statements in (("one statement", [neighborhoods(sorted(anchors))]),
                            ("a statement each", [neighborhoods([a]) for a in anchors])):
        answers, seconds = ask(args, [*statements, "STATS IO"])
        reads = answers[-1][0]["reads"] - empty
        print(f"{way}: {sum(len(a) for a in answers[:-1])} neighborhoods, {reads} reads, {len(needed)} needed, "
              f"{reads / len(needed):.3f} times, {seconds:.1f} s")


if __name__ == "__main__":
    main()
