#!/usr/bin/env python3
"""Appends to a store, a commit after the other, and its compaction.

    append.py --gdb GDB --dir DIR [--scale 22] [--base 64e6] [--commits 100] [--edges 1e6]
        [--ids dense|integer|text] [--new 0] [--compact 256MiB] [--check] [--keep]

Makes an R-MAT graph of 2^SCALE nodes, ingests the first BASE edges with a ring of all nodes, and appends the others, EDGES in
each commit, by a process of `gdb append` each: opening the store, merging levels and all syncs are in
the time. Ids are dense, in arrays; or sparse integers or text, in CSV files. Of --new a share of the
edges of each commit goes to nodes that the store lacks. --check compares the merged lists with the
catalog at the end.

--compact SIZE then compacts the store, in a memory cgroup of that size (as root; without the right to
make one, by --memory alone, which it says), and compares that with copying the files of the
store in the same cgroup, which are read past the page cache and synced: both as bytes read and written
a second. Sources and the store are made in DIR, and removed; --keep leaves them, and --keep again
uses the sources that are there.
"""
import argparse
import array
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "peers"))
from cgroup import Group  # noqa: E402

HEADER = 128


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gdb", required=True)
    p.add_argument("--dir", default=".")
    p.add_argument("--scale", type=int, default=22)
    p.add_argument("--base", type=float, default=64e6)
    p.add_argument("--commits", type=int, default=100)
    p.add_argument("--edges", type=float, default=1e6)
    p.add_argument("--ids", choices=("dense", "integer", "text"), default="dense")
    p.add_argument("--new", type=float, default=0)
    p.add_argument("--memory", help="of each append")
    p.add_argument("--compact")
    p.add_argument("--check", action="store_true")
    p.add_argument("--keep", action="store_true")
    return p.parse_args()


def run(*args, before=None):
    """Runs gdb, and returns seconds, CPU seconds of the program and of the system, and its output."""
    begun = time.monotonic()
    child = subprocess.Popen(args, stdout=subprocess.PIPE, preexec_fn=before)
    out = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if child.returncode is None:
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(args)}: exit code {child.returncode}")
    return time.monotonic() - begun, used.ru_utime, used.ru_stime, out


class Sources:
    """A file for the base and one for each commit."""

    def __init__(self, a):
        self.a, self.nodes, self.base, self.edges = a, 1 << a.scale, int(a.base), int(a.edges)
        self.dir = os.path.join(a.dir, f"append-{a.ids}-{a.scale}-{self.base}-{a.commits}-{self.edges}-{a.new:g}")
        if not os.path.exists(self.dir):
            self.make()

    def path(self, i):
        return os.path.join(self.dir, f"{i}.{'npy' if self.a.ids == 'dense' else 'csv'}")

    def make(self):
        a, whole, made = self.a, self.dir + ".rmat", self.dir + ".made"
        shutil.rmtree(whole, ignore_errors=True)
        shutil.rmtree(made, ignore_errors=True)
        run(a.gdb, "bench", "gen", "rmat", f"--scale={a.scale}", f"--edges={self.base + a.commits * self.edges}",
            "--dim=1", "--classes=2", f"--out={whole}")
        os.makedirs(made)
        self.dir, place = made, self.dir
        fresh = self.nodes
        with open(os.path.join(whole, "edges.npy"), "rb") as f:
            f.seek(HEADER)
            for i in range(a.commits + 1):
                pairs = array.array("I")
                pairs.fromfile(f, 2 * (self.edges if i else self.base))
                if i == 0:  # a ring, so that the base lacks no number
                    for v in range(self.nodes):
                        pairs.extend((v, v - 1 if v else self.nodes - 1))
                for k in range(int(a.new * self.edges) if i else 0):
                    pairs[2 * k], fresh = fresh, fresh + 1
                self.write(self.path(i), pairs)
        os.rename(made, place)
        self.dir = place
        shutil.rmtree(whole)

    def write(self, path, pairs):
        with open(path, "wb") as f:
            if self.a.ids == "dense":
                head = f"{{'descr': '<u4', 'fortran_order': False, 'shape': ({len(pairs) // 2}, 2), }}"
                f.write(b"\x93NUMPY\x01\x00v\x00" + head.ljust(HEADER - 11).encode() + b"\n")
                pairs.tofile(f)
                return
            form = "%d,%d\n" if self.a.ids == "integer" else "node-%d,node-%d\n"
            f.write(b"src,dst\n")
            for at in range(0, len(pairs), 1 << 17):
                some = tuple(v * 2654435761 % (1 << 40) for v in pairs[at:at + (1 << 17)])
                f.write((form * (len(some) // 2) % some).encode())


def appends(a, s, store):
    memory = [f"--memory={a.memory}"] if a.memory else []
    took = [run(a.gdb, "append", store, f"--edges={s.path(i)}", "--quiet", *memory)[:3]
            for i in range(1, a.commits + 1)]
    wall, user, system = (sum(t[k] for t in took) for k in range(3))
    total = s.edges * a.commits
    print(f"{a.commits} commits of {s.edges} edges: {wall:.1f} s, {total / wall / 1e6:.2f} million edges/s, "
          f"CPU {user:.1f} s and {system:.1f} s of the system")
    each = sorted(t[0] for t in took)
    print(f"a commit: median {statistics.median(each):.2f} s, least {each[0]:.2f} s, most {each[-1]:.2f} s; "
          f"load {os.getloadavg()[0]:.1f}")


def tree(path):
    return [os.path.join(d, f) for d, _, files in os.walk(path) for f in files]


def cgroup(size):
    """Returns what a child does to be in a cgroup of size bytes, and what removes the cgroup."""
    try:
        group = Group(size)
    except OSError as e:
        print(f"no cgroup: {e}")
        return None, lambda: None
    return group.join, group.remove


def forget(paths):
    for path in paths:
        with open(path, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


COPY = """
import os, sys
buf = memoryview(bytearray(1 << 20))
with open(sys.argv[1], "wb", buffering=0) as to:
    for path in sys.stdin.read().split():
        with open(path, "rb", buffering=0) as f:
            while n := f.readinto(buf):
                to.write(buf[:n])
    os.fsync(to.fileno())
"""


def copied(store, enter):
    """Returns the bytes read and written, and the seconds, of a copy of a store's files."""
    paths, to = [p for p in tree(store) if "/catalog/" not in p], store + ".copy"
    forget(paths)
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", COPY, to], input="\n".join(paths), text=True, check=True,
                   preexec_fn=enter)
    took = time.monotonic() - begun
    os.remove(to)
    return 2 * sum(map(os.path.getsize, paths)), took


def compaction(a, store):
    size = a.compact.upper().removesuffix("IB")
    size = int(float(size[:-1]) * {"M": 1 << 20, "G": 1 << 30}[size[-1]])
    enter, leave = cgroup(size)
    moved, alone = copied(store, enter)
    paths = [p for p in tree(store) if "/catalog/" not in p]
    before = sum(map(os.path.getsize, paths))
    forget(paths)
    wall, user, system, _ = run(a.gdb, "compact", store, "--quiet", f"--memory={size}", before=enter)
    after = sum(os.path.getsize(p) for p in tree(store) if "/catalog/" not in p)
    leave()
    rate, own = (before + after) / wall / 1e6, moved / alone / 1e6
    print(f"compaction in {a.compact}: {wall:.1f} s, CPU {user:.1f} s and {system:.1f} s of the system, "
          f"{before / 1e6:.0f} MB to {after / 1e6:.0f} MB: {rate:.0f} MB/s read and written; "
          f"a copy {alone:.1f} s, {own:.0f} MB/s: {rate / own:.2f} of it; load {os.getloadavg()[0]:.1f}")


def main():
    a = arguments()
    os.makedirs(a.dir, exist_ok=True)
    s, store = Sources(a), os.path.join(a.dir, "append.gdb")
    shutil.rmtree(store, ignore_errors=True)
    wall, user, system, _ = run(a.gdb, "ingest", f"--edges={s.path(0)}", f"--out={store}", "--quiet")
    print(f"ingest of {s.base + s.nodes} edges: {wall:.1f} s, {(s.base + s.nodes) / wall / 1e6:.2f} million edges/s, "
          f"CPU {user:.1f} s and {system:.1f} s of the system")
    appends(a, s, store)
    info = json.loads(run(a.gdb, "info", store, "--json")[3])
    print(f"{info['edges']} edges, levels: {len(info.get('levels') or [])}")
    if a.check:
        run(a.gdb, "check", store, "--full", "--quiet")
    if a.compact:
        compaction(a, store)
    if not a.keep:
        shutil.rmtree(store)
        shutil.rmtree(s.dir)


if __name__ == "__main__":
    main()
