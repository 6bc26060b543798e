#!/usr/bin/env python3
"""Queries of a store that are asked in little memory, and what they answer in much.

    bounded.py STORE --gdb ./gdb [--memory 256MiB] [--much 8GiB] [--limit 600] [--names person,knows,age] [--only NAME]

Asks the statements of query.py about a graph of one relation, each in a shell of its own, in a memory cgroup of --memory, and
again in --much: whether the answers are the same, or the statement is refused with the memory that would do. --names are the
label, the relation and the property of the store. A statement that takes longer than --limit seconds is ended, and said so.
It exits with 1 if a process was killed in its cgroup, or an answer differs.
"""
import argparse
import subprocess
import sys
import time

import statements
from cgroup import Group

UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def size(text):
    return int(float(text[:-3]) * UNITS[text[-3:]])


def ask(args, statement, memory, group=None):
    """What a shell answers, or refuses, and its seconds and exit status; None past the limit."""
    begun = time.perf_counter()
    p = subprocess.Popen([args.gdb, "shell", args.store, "--memory", memory, "--threads", "2", "--quiet", "--mode", "json", "-c",
                          statement], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         preexec_fn=group.join if group else None)
    try:
        out, err = p.communicate(timeout=args.limit)
    except subprocess.TimeoutExpired:
        p.kill()
        p.communicate()
        return None, args.limit, None
    return out.strip() or err.strip(), time.perf_counter() - begun, p.returncode


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store")
    p.add_argument("--gdb", default="gdb")
    p.add_argument("--memory", default="256MiB")
    p.add_argument("--much", default="8GiB")
    p.add_argument("--limit", type=float, default=600)
    p.add_argument("--names", default="node,edge,x", help="label, relation and property")
    p.add_argument("--hub", type=int, required=True, help="the id of a node with many edges")
    p.add_argument("--far", type=int, nargs=2, required=True, help="the ids of two nodes")
    p.add_argument("--only", default="", help="statements whose name has this")
    args = p.parse_args()
    label, relation, prop = args.names.split(",")
    wrong = 0
    for s in statements.plain(args.hub, [args.far]):
        if args.only not in s.name:
            continue
        text = s.cypher.replace(":node", ":" + label).replace(":edge", ":" + relation)
        text = text.replace(".x", "." + prop)
        group = Group(size(args.memory))
        little, took, status = ask(args, text, args.memory, group)
        peak = group.peak() >> 20
        group.remove()
        if status is None:
            said = f"not done in {args.limit:.0f} s"
        elif status < 0:
            said, wrong = "KILLED", wrong + 1
        elif status:
            said = "refused: " + little.splitlines()[0]
        else:
            much, other, status = ask(args, text, args.much)
            if status is None:
                said = "answered; not done in much"
            elif much == little:
                said = f"same as in {args.much}, {other:.1f} s"
            else:
                said, wrong = f"DIFFERS: {little[:60]} and {much[:60]}", wrong + 1
        print(f"{s.name:24} {took:7.1f} s {peak:5} MiB  {said}", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
