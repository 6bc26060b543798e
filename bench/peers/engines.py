"""Systems that answer queries over the same tables: gdb by its openCypher, DuckDB by SQL, Kuzu and its successor Ladybug by theirs.

Each runs in a process of its own with --threads threads and keeps its data on disk. ask() sends one statement and returns rows
and seconds; past its limit the process is killed and begun anew. `engines.py SYSTEM DIR THREADS` is that process for systems
that are Python packages: statements come in as lines of JSON, and answers go out so.
"""
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

SYSTEMS = ("gdb", "duckdb", "kuzu", "ladybug")
SQL_TYPES = {"int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN"}
KUZU_TYPES = {"int64": "INT64", "double": "DOUBLE", "string": "STRING", "bool": "BOOLEAN"}


class Graph:
    """Tables: nodes are those of a type with a column id first, edges those of (type, relation, type) with src and dst first."""

    def __init__(self, name, nodes, edges):
        self.name, self.nodes, self.edges = name, nodes, edges

    def write(self, dir):
        """Writes a file for each table."""
        dir.mkdir(parents=True, exist_ok=True)
        for name, table in self.tables():
            parquet.write_table(table, dir / (name + ".parquet"))

    def tables(self):
        yield from self.nodes.items()
        yield from (("_".join(key), table) for key, table in self.edges.items())

    def relations(self):
        """The tables of each relation, by its name."""
        out = {}
        for key in self.edges:
            out.setdefault(key[1], []).append(key)
        return out


def made(ids):
    """A property of 0 to 99 that follows from the id."""
    return pa.array((ids * 2654435761 % (1 << 32)) // 65536 % 100)


def plain(path):
    """A directed graph of edges.npy without loops and duplicates: nodes have a made property x. A type without edges stands
    beside them, since gdb keeps properties where there are several types."""
    edges = np.unique(np.load(path / "edges.npy")[:, :2].astype(np.int64), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    ids = np.unique(edges)
    return Graph(path.name, {"node": pa.table({"id": ids, "x": made(ids)}), "other": pa.table({"id": [0]})},
                 {("node", "edge", "node"): pa.table({"src": edges[:, 0], "dst": edges[:, 1]})})


def ldbc(path):
    """The sample of LDBC's social network. Nodes have the numbers of its arrays as ids, since a post and a forum may have one id
    of LDBC's, number, and a made property x, since the sample has no other."""
    rows = [line.split("\t") for line in (path / "edge_types.tsv").read_text().splitlines()]
    names = [line.split("\t")[1] for line in (path / "node_types.tsv").read_text().splitlines()]
    edge, when, kind, ids = (np.load(path / f"{f}.npy") for f in ("edges_typed", "edge_prop", "node_type", "orig_id"))
    nodes = {name: pa.table({"id": np.flatnonzero(kind == i), "number": ids[kind == i], "x": made(ids[kind == i])})
             for i, name in enumerate(names)}
    edges = {}
    for number, src, relation, dst, _ in rows:
        of = edge[:, 2] == int(number)
        columns = {"src": edge[of, 0], "dst": edge[of, 1]}
        if (when[of] >= 0).all():
            columns["since"] = when[of]
        edges[src, relation, dst] = pa.table(columns)
    return Graph(path.name, nodes, edges)


class Failed(Exception):
    """A statement that a system refuses, or that takes too long."""


class Process:
    """A process that reads a statement a line and writes its answer in lines."""

    def __init__(self, command):
        self.command, self.process = command, None

    def begin(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, bufsize=0)
        self.buffer = b""

    def send(self, text):
        if self.process is None:
            self.begin()
        self.process.stdin.write(text.encode() + b"\n")

    def line(self, end):
        """The next line, and when it was whole."""
        while b"\n" not in self.buffer:
            if not select.select([self.process.stdout], [], [], max(0, end - time.perf_counter()))[0]:
                self.close()
                raise Failed("limit")
            got = os.read(self.process.stdout.fileno(), 1 << 20)
            if not got:
                self.close()
                raise Failed("it ended")
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode(), time.perf_counter()

    def peak(self):
        """The peak of its resident memory so far, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text() if self.process else "VmHWM: 0 kB"
        return 1024 * int(status.split("VmHWM:")[1].split()[0])

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Gdb(Process):
    """gdb shell, whose statements come through a pipe. A second statement marks the end of the first one's answer; the time is
    until the last line of the first one."""

    END = "the end of an answer"

    def __init__(self, dir, threads, memory, binary="gdb", out_lists=True):
        self.binary, self.memory, self.store = binary, memory, str(dir / "store.gdb")
        self.direction = "both" if out_lists else "in"
        super().__init__([binary, "shell", self.store, "--mode", "json", "--keep-going", "--quiet", "--memory", memory,
                          "--threads", str(threads)])

    def load(self, graph, dir):
        flags = [f for name in graph.nodes for f in ("--nodes", f"{name}={dir}/{name}.parquet")]
        flags += [f for key in graph.edges for f in ("--edges", f"{':'.join(key)}={dir}/{'_'.join(key)}.parquet")]
        shutil.rmtree(self.store, ignore_errors=True)
        subprocess.run([self.binary, "ingest", "--quiet", "--out", self.store, "--direction", self.direction, "--memory",
                        self.memory, *flags], check=True, stdout=subprocess.DEVNULL)

    def ask(self, text, limit):
        begun = time.perf_counter()
        self.send(f"{text};\nRETURN '{self.END}' AS x;")
        lines, last = [], begun
        while True:
            line, at = self.line(begun + limit)
            if self.END in line:
                break
            lines.append(line)
            last = at
        rows = [i for i, line in enumerate(lines) if line.startswith("[")]
        if not rows:
            raise Failed(" ".join(lines)[:300])
        text = "".join(line for line in lines[rows[0]:] if line[:1] in "[ ")
        return [list(row.values()) for row in json.loads(text)], last - begun


class Package(Process):
    """A system that is a Python package."""

    def __init__(self, system, dir, threads):
        self.system, self.dir = system, dir
        super().__init__([sys.executable, __file__, system, str(dir), str(threads)])

    def load(self, graph, dir):
        where = self.dir / self.system
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        for statement in (sql_load if self.system == "duckdb" else kuzu_load)(graph, dir):
            self.ask(statement, 3600)
        if self.system != "duckdb":
            self.ask("CHECKPOINT", 600)

    def ask(self, text, limit):
        begun = time.perf_counter()
        self.send(json.dumps(text))
        answer = json.loads(self.line(begun + limit)[0])
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["rows"], answer["seconds"]


def columns_of(table, types, skip):
    return ", ".join(f"{f.name} {types[str(f.type)]}" for f in list(table.schema)[skip:])


def sql_load(graph, dir):
    """A table for each, a view of all tables of a relation that has several, and NAME_both with both directions of the edges of a
    relation between nodes of one type."""
    for name, _ in graph.tables():
        yield f"CREATE TABLE {name} AS SELECT * FROM '{dir}/{name}.parquet'"
    for name in graph.nodes:
        yield f"CREATE UNIQUE INDEX {name}_id ON {name}(id)"
    for relation, keys in graph.relations().items():
        tables = " UNION ALL BY NAME ".join(f"SELECT * FROM {'_'.join(key)}" for key in keys)
        yield f"CREATE VIEW {relation} AS {tables}"
        if len(keys) == 1 and keys[0][0] == keys[0][2]:
            yield f"CREATE TABLE {relation}_both AS SELECT src, dst FROM {relation} UNION ALL SELECT dst, src FROM {relation}"


def kuzu_load(graph, dir):
    for name, table in graph.nodes.items():
        yield f"CREATE NODE TABLE {name}({columns_of(table, KUZU_TYPES, 0)}, PRIMARY KEY(id))"
        yield f"COPY {name} FROM '{dir}/{name}.parquet'"
    for relation, keys in graph.relations().items():
        ends = ", ".join(f"FROM {key[0]} TO {key[2]}" for key in keys)
        more = columns_of(graph.edges[keys[0]], KUZU_TYPES, 2)
        yield f"CREATE REL TABLE {relation}({ends}{', ' + more if more else ''})"
        for key in keys:
            yield f"COPY {relation} FROM '{dir}/{'_'.join(key)}.parquet' (from='{key[0]}', to='{key[2]}')"


def opened(system, dir, threads):
    """A function from a statement to all its rows, with one connection."""
    path = os.path.join(dir, system, "db")
    if system == "duckdb":
        import duckdb
        connection = duckdb.connect(path, config={"threads": threads})
        return lambda text: connection.execute(text).fetchall()
    if system == "kuzu":
        import kuzu as package
    else:
        import ladybug as package
    database = package.Database(path, max_num_threads=threads)
    connection = package.Connection(database, num_threads=threads)
    return lambda text: connection.execute(text).get_all()


def main(system, dir, threads):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a package prints is no answer
    ask = opened(system, dir, int(threads))
    for line in sys.stdin:
        begun = time.perf_counter()
        try:
            rows = [list(row) for row in ask(json.loads(line))]
            out = {"rows": rows, "seconds": time.perf_counter() - begun}
        except Exception as error:  # of any kind: the package's own
            out = {"error": str(error)[:300]}
        print(json.dumps(out, default=figure), file=answers, flush=True)


def figure(value):
    """A number of a type that JSON has not, or text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
