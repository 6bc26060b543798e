#!/usr/bin/env python3
"""Load of a graph from CSV: gdb ingest in bounded memory beside Kuzu's COPY.

    load.py --gdb ./gdb --work DIR [--people 10e6] [--friends 80e6] [--memory 1GiB] [--pairs 3]

People have an id, a name, an age, a city and a birthday; who knows whom since when, and how well, is an edge. Each system loads
the same two files in turn, --pairs times, with 2 threads, and is asked how many people and edges there are, and for sums of their
columns. Times are of the whole command or process, in seconds that passed and of all cores, and memory is the most that it had
resident. gdb writes lists in both directions, as Kuzu does; it keeps the weight of an edge as f32, and Kuzu as DOUBLE.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROWS = 1_000_000  # that are written at once
CITIES = np.array(["Riga", "Oslo", "Porto", "Lima", "Accra", "Hanoi", "Turin", "Cork"])

KUZU = """
import kuzu, sys
db = kuzu.Database(sys.argv[1])
c = kuzu.Connection(db, num_threads=2)
c.execute("CREATE NODE TABLE person(id INT64, name STRING, age INT64, city STRING, born DATE, PRIMARY KEY(id))")
c.execute("CREATE REL TABLE knows(FROM person TO person, since INT64, weight DOUBLE)")
c.execute(f"COPY person FROM '{sys.argv[2]}/person.csv' (header=true)")
c.execute(f"COPY knows FROM '{sys.argv[2]}/knows.csv' (header=true)")
"""

ASK_KUZU = """
import kuzu, sys
c = kuzu.Connection(kuzu.Database(sys.argv[1]), num_threads=2)
for of in sys.argv[2:]:
    print(c.execute(of).get_next()[0])
"""

QUESTIONS = ["MATCH (n:person) RETURN count(*)", "MATCH (:person)-[e:knows]->(:person) RETURN count(*)",
             "MATCH (n:person) RETURN sum(n.age)", "MATCH (:person)-[e:knows]->(:person) RETURN sum(e.since)"]

SCHEMA = {"tables": [{"name": "person", "file": "person.csv", "key": "id"}],
          "edges": [{"name": "knows", "from": "person", "to": "person", "file": "knows.csv", "source": "src", "target": "dst",
                     "weight": "weight", "time": "none"}]}


def write(path, header, rows, row):
    """Writes a file of rows; row makes the lines of numbers from a to b."""
    if path.exists():
        return
    with open(path, "w") as f:
        f.write(header + "\n")
        for a in range(0, rows, ROWS):
            f.write("\n".join(row(a, min(a + ROWS, rows))) + "\n")


def write_graph(dir, people, friends):
    random = np.random.default_rng(1)

    def person(a, b):
        n = b - a
        born = np.datetime64("1950-01-01") + random.integers(0, 20000, n)
        for i, age, city, day in zip(range(a, b), random.integers(15, 90, n), CITIES[random.integers(0, 8, n)], born):
            yield f"{i * 7 + 3},Person {i},{age},{city},{day}"

    def knows(a, b):
        n = b - a
        ends = (random.random((2, n)) ** 2 * people).astype(np.int64) * 7 + 3
        for s, d, since, w in zip(*ends, random.integers(1990, 2026, n), random.random(n)):
            yield f"{s},{d},{since},{w:.4f}"

    write(dir / "person.csv", "id,name,age,city,born", people, person)
    write(dir / "knows.csv", "src,dst,since,weight", friends, knows)
    (dir / "schema.json").write_text(json.dumps(SCHEMA))


def timed(command):
    """Seconds, those of all cores, and the most resident memory in MiB."""
    begun = time.perf_counter()
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    if status:
        sys.exit(f"{command[0]} failed")
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def asked(command):
    """The words that a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def load_gdb(args):
    store = args.work / "load.gdb"
    shutil.rmtree(store, ignore_errors=True)
    took = timed([args.gdb, "ingest", str(args.work), "--schema", str(args.work / "schema.json"), "--direction", "both",
                  "--memory", args.memory, "--threads", "2", "--quiet", "--out", str(store)])
    answers = [asked([args.gdb, "shell", str(store), "-c", of])[-1] for of in QUESTIONS]
    return *took, answers


def load_kuzu(args):
    db = args.work / "load.kuzu"
    for path in args.work.glob("load.kuzu*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    took = timed([sys.executable, "-c", KUZU, str(db), str(args.work)])
    return *took, asked([sys.executable, "-c", ASK_KUZU, str(db), *QUESTIONS])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gdb", default="gdb", help="the binary")
    p.add_argument("--work", type=Path, required=True, help="where files and stores are written")
    p.add_argument("--people", type=float, default=10e6)
    p.add_argument("--friends", type=float, default=80e6)
    p.add_argument("--memory", default="1GiB", help="of gdb")
    p.add_argument("--pairs", type=int, default=3)
    args = p.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    write_graph(args.work, int(args.people), int(args.friends))
    systems = {"gdb": load_gdb, "kuzu": load_kuzu}
    seen, answers = {name: [] for name in systems}, {}
    for pair in range(args.pairs):
        for name, load in systems.items():
            seconds, cores, memory, answers[name] = load(args)
            seen[name].append((seconds, cores))
            print(f"pair {pair + 1}: {name} {seconds:.1f} s, {cores:.1f} s of cores, {memory:.0f} MiB", flush=True)
    if answers["gdb"] != answers["kuzu"]:
        sys.exit(f"answers differ: {answers}")
    ratio, cores = (statistics.median(t[k] for t in seen["kuzu"]) / statistics.median(t[k] for t in seen["gdb"]) for k in (0, 1))
    print(f"{answers['gdb'][0]} people, {answers['gdb'][1]} edges: gdb loads {ratio:.2f} times as fast, in {cores:.2f} times "
          "less time of cores")


if __name__ == "__main__":
    main()
