#!/usr/bin/env python3
"""Random statements of openCypher to gdb, beside what DuckDB answers to the same in SQL.

    random_queries.py --gdb ./gdb --work DIR [--seed 1] [--count 5000] [--limit 10]

The store is small and typed: nulls, loops, parallel edges, a relation between several types. A statement is a chain of MATCH,
OPTIONAL MATCH, WITH and UNWIND and a RETURN, drawn together with its SQL, in which each clause is a table of its variables:
nodes and relationships are structs, and that no relationship stands twice in a MATCH is written out. Answers are compared as
multisets, in order where all columns are ordered. What differs is printed with both texts; the exit code is
then 1. Counts are printed every 500 statements; Ctrl-C ends it with the last ones.
"""
import argparse
import random
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import engines
from query import plainly

NODE = "{{'id': {0}.id, 'label': {0}.label, 'n': {0}.n, 's': {0}.s, 'f': {0}.f}}"
REL = "{{'rid': {0}.rid, 'type': {0}.type, 'k': {0}.k}}"
QUANTIFIERS = {"any": "> 0", "none": "= 0", "single": "= 1", "all": "= len({})"}
LABELS, TYPES = ("A", "B"), ("R", "S", "T")


def graph(seed):
    """24 nodes of A and 15 of B; R joins A and A, with loops and parallel edges, S both types to B, T leads from B to A."""
    draw = np.random.default_rng(seed)

    def some(values, share):
        return pa.array([None if draw.random() < share else v for v in values])

    def nodes(ids):
        return pa.table({"id": ids, "n": some(draw.integers(-3, 6, len(ids)).tolist(), .2),
                         "s": some(draw.choice(["ab", "abc", "b", "ca", "x y"], len(ids)).tolist(), .2),
                         "f": some((draw.integers(-8, 9, len(ids)) / 4).tolist(), .1)})

    def edges(src, dst, count):
        return pa.table({"src": draw.choice(src, count), "dst": draw.choice(dst, count),
                         "k": some(draw.integers(0, 5, count).tolist(), .2)})
    a, b = np.arange(24), np.arange(100, 115)
    rr = edges(a, a, 30)
    rr = pa.concat_tables([rr, rr.slice(0, 5), pa.table({"src": a[:4], "dst": a[:4], "k": pa.array([1, None, 3, 1])})])
    return engines.Graph("random", {"A": nodes(a), "B": nodes(b)},
                         {("A", "R", "A"): rr, ("A", "S", "B"): edges(a, b, 24), ("B", "S", "B"): edges(b, b, 10),
                          ("B", "T", "A"): edges(b, a, 20)})


def views(graph):
    """DuckDB's tables of all nodes and of all relationships."""
    yield "CREATE TABLE nodes AS " + " UNION ALL ".join(f"SELECT '{n}' AS label, * FROM {n}" for n in graph.nodes)
    parts = " UNION ALL ".join(f"SELECT src, dst, '{key[1]}' AS type, k FROM {'_'.join(key)}" for key in graph.edges)
    yield f"CREATE TABLE rels AS SELECT row_number() OVER () AS rid, * FROM ({parts})"
    yield "CREATE TABLE rels_both AS SELECT * FROM rels UNION ALL SELECT rid, dst, src, type, k FROM rels WHERE src <> dst"


class Query:
    """A statement that is drawn clause by clause, with its SQL."""

    def __init__(self, draw):
        self.draw, self.cypher, self.ctes, self.scope, self.named = draw, [], ["q0 AS (SELECT 1 AS one)"], {}, 0

    def name(self, kind):
        self.named += 1
        return f"{kind}{self.named}"

    def chance(self, share):
        return self.draw.random() < share

    def of(self, *kinds):
        return [v for v, kind in self.scope.items() if kind in kinds]

    def table(self, sql, kind="MATERIALIZED"):
        self.ctes.append(f"q{len(self.ctes)} AS {kind} ({sql})")

    @property
    def last(self):
        return f"q{len(self.ctes) - 1}"

    # Expressions: pairs of openCypher and SQL.

    def number(self, depth=2):
        d, nodes, rels, numbers = self.draw, self.of("node"), self.of("rel"), self.of("int")
        pick, more = d.random(), self.of("path", "list")
        if more and self.chance(.15):
            v = d.choice(more)
            return (f"length({v})", v) if self.scope[v] == "path" else (f"size({v})", f"len({v})")
        if depth and pick < .15:
            a, b, op = self.number(depth - 1), self.number(depth - 1), d.choice("+-*")
            return f"({a[0]} {op} {b[0]})", f"({a[1]} {op} {b[1]})"
        if depth and pick < .2:
            a, b = self.number(depth - 1), self.number(depth - 1)
            return f"coalesce({a[0]}, {b[0]})", f"coalesce({a[1]}, {b[1]})"
        if depth and pick < .25:
            c, a, b = self.condition(0, False), self.number(depth - 1), self.number(depth - 1)
            return (f"CASE WHEN {c[0]} THEN {a[0]} ELSE {b[0]} END", f"CASE WHEN {c[1]} THEN {a[1]} ELSE {b[1]} END")
        if depth and pick < .3:
            a, f = self.number(depth - 1), d.choice(["abs", "sign"])
            return f"{f}({a[0]})", f"{f}({a[1]})"
        if nodes and pick < .65:
            v, p = d.choice(nodes), d.choice(["n", "n", "id", "f"])
            return f"{v}.{p}", f"{v}.{p}"
        if rels and pick < .8:
            v = d.choice(rels)
            return f"{v}.k", f"{v}.k"
        if numbers and pick < .93:
            return (d.choice(numbers),) * 2
        return (str(d.randint(-2, 5)),) * 2

    def text(self):
        d, nodes, rels = self.draw, self.of("node"), self.of("rel")
        if rels and self.chance(.25):
            v = d.choice(rels)
            return f"type({v})", f"{v}.type"
        if nodes and self.chance(.85):
            v = d.choice(nodes)
            return d.choice([(f"{v}.s", f"{v}.s"), (f"{v}.s", f"{v}.s"), (f"toUpper({v}.s)", f"upper({v}.s)"),
                             (f"labels({v})[0]", f"{v}.label"), (f"substring({v}.s, 1)", f"substring({v}.s, 2)")])
        return (f"'{d.choice(['ab', 'b', '', 'R', 'A'])}'",) * 2

    def condition(self, depth=2, patterns=True):
        d, nodes, pick = self.draw, self.of("node"), self.draw.random()
        if depth and pick < .3:
            a, b, op = self.condition(depth - 1), self.condition(depth - 1), d.choice(["AND", "OR", "XOR"])
            sql = f"({a[1]} {op} {b[1]})" if op != "XOR" else f"(({a[1]}) <> ({b[1]}))"
            return f"({a[0]} {op} {b[0]})", sql
        if depth and pick < .4:
            a = self.condition(depth - 1)
            return f"NOT ({a[0]})", f"NOT ({a[1]})"
        if nodes and patterns and pick < .5:
            return self.exists(d.choice(nodes))
        if nodes and pick < .56:
            v, label = d.choice(nodes), d.choice(LABELS)
            return f"{v}:{label}", f"({v}.label = '{label}')"
        if len(nodes) > 1 and pick < .6:
            a, b = d.sample(nodes, 2)
            op = d.choice(["=", "<>"])
            return f"{a} {op} {b}", f"({a}.id {op} {b}.id)"
        if self.of("list") and self.chance(.3):
            v, (word, sql), least = d.choice(self.of("list")), d.choice(list(QUANTIFIERS.items())), d.randint(-1, 3)
            return f"{word}(x IN {v} WHERE x > {least})", f"(len(list_filter({v}, lambda x: x > {least})) {sql.format(v)})"
        if pick < .68:
            a = d.choice([self.number(1), self.text()])
            no = d.choice(["", "NOT "])
            return f"{a[0]} IS {no}NULL", f"({a[1]} IS {no}NULL)"
        if pick < .78:
            a, b = self.text(), self.text()
            op, f = d.choice([("STARTS WITH", "starts_with"), ("ENDS WITH", "suffix"), ("CONTAINS", "contains")])
            return f"{a[0]} {op} {b[0]}", f"{f}({a[1]}, {b[1]})"
        if pick < .84:
            a, items = self.number(1), [d.choice(["1", "2", "-1", "0", "null"]) for _ in range(d.randint(1, 3))]
            return f"{a[0]} IN [{', '.join(items)}]", f"({a[1]} IN ({', '.join(items)}))"
        side = self.text if self.chance(.25) else lambda: self.number(1)
        a, b, op = side(), side(), d.choice(["=", "<>", "<", "<=", ">", ">="])
        return f"{a[0]} {op} {b[0]}", f"({a[1]} {op} {b[1]})"

    def exists(self, v):
        types, arrow, back = self.draw.sample(TYPES, self.draw.randint(1, 2)), *self.draw.choice([("-", "->"), ("<-", "-"),
                                                                                                  ("-", "-")])
        source = "rels_both" if arrow + back == "--" else "rels"
        here, there = ("dst", "src") if arrow == "<-" else ("src", "dst")
        listed = ", ".join(f"'{t}'" for t in types)
        hop = f"({v}){arrow}[:{'|'.join(types)}]{back}"
        sql = f"FROM {source} r JOIN nodes m ON m.id = r.{there} WHERE r.{here} = {v}.id AND r.type IN ({listed})"
        if self.chance(.4):
            return f"EXISTS {{ MATCH {hop}(m) WHERE m.n > 1 }}", f"EXISTS (SELECT 1 {sql} AND m.n > 1)"
        return f"{hop}()", f"EXISTS (SELECT 1 {sql})"

    # Clauses.

    def node(self, bound, out, where, new):
        """A node of a pattern: its text, and the SQL of its id."""
        d = self.draw
        if bound and self.chance(.2):
            v = d.choice(bound)
            alias = out.get(v)
            return f"({v})", f"{alias}.id" if alias else f"q.{v}.id", v
        v, alias, text = self.name("v"), self.name("t"), ""
        new.append(("nodes", alias))
        out[v] = alias
        if self.chance(.3):
            label = d.choice(LABELS)
            text = f":{label}"
            where.append(f"{alias}.label = '{label}'")
        if self.chance(.06):
            n = d.randint(-1, 4)
            text += f" {{n: {n}}}"
            where.append(f"{alias}.n = {n}")
        return f"({v}{text})", f"{alias}.id", v

    def walk(self, types, both, least, most):
        """SQL of walks of up to two relationships, none of which stands twice."""
        source, of = "rels_both" if both else "rels", f"type IN ({', '.join(repr(t) for t in types)})"
        parts = ["SELECT []::BIGINT[] AS rids, id AS src, id AS dst FROM nodes"] if least == 0 else []
        if least <= 1:
            parts.append(f"SELECT [rid], src, dst FROM {source} WHERE {of}" if parts else
                         f"SELECT [rid] AS rids, src, dst FROM {source} WHERE {of}")
        if most == 2:
            parts.append(f"SELECT [x.rid, y.rid] AS rids, x.src, y.dst FROM {source} x JOIN {source} y ON y.src = x.dst AND "
                         f"y.rid <> x.rid WHERE x.{of} AND y.{of}")
        return f"({' UNION ALL '.join(parts)})"

    def pattern(self, hops, bound, out, rels, where, new, ids):
        """A path of a MATCH: its text. It adds to what SQL needs of it."""
        d = self.draw
        text, at, v = self.node(bound, out, where, new)
        for _ in range(hops):
            types = d.sample(TYPES, d.randint(1, 3)) if self.chance(.75) else list(TYPES)
            left, right = d.choice([("-", "->"), ("-", "->"), ("<-", "-"), ("-", "-")])
            both, alias, named = left + right == "--", self.name("t"), ""
            shown = ":" + "|".join(types) if len(types) < 3 or self.chance(.5) else ""
            if self.chance(.12):
                least, most = d.choice([(1, 2), (0, 1), (0, 2), (2, 2)])
                shown += f"*{least}..{most}"
                new.append((self.walk(types, both, least, most), alias))
                ids.append(f"{alias}.rids")
            else:
                new.append(("rels_both" if both else "rels", alias))
                where.append(f"{alias}.type IN ({', '.join(repr(t) for t in types)})")
                ids.append(f"[{alias}.rid]")
                if self.chance(.5):
                    named = self.name("e")
                    rels[named] = alias
            here, there = ("dst", "src") if left == "<-" else ("src", "dst")
            where.append(f"{alias}.{here} = {at}")
            end, at, v = self.node(bound + list(out), out, where, new)
            where.append(f"{alias}.{there} = {at}")
            text += f"{left}[{named}{shown}]{right}{end}"
        return text

    def match(self, optional):
        d, out, rels, where, new, ids = self.draw, {}, {}, [], [], []
        bound = self.of("node")
        if bound and (optional or self.chance(.8)):
            bound = bound * 3
        texts, path = [self.pattern(d.choice([1, 1, 2, 2, 3] if not bound else [1, 1, 2]), bound, out, rels, where, new, ids)], ""
        if self.chance(.15):
            path = self.name("p")
            length = " + ".join(f"len({r})" for r in ids)
            texts[0] = f"{path} = {texts[0]}"
        if self.chance(.2):
            texts.append(self.pattern(1, list(out), out, rels, where, new, ids))
        for i, a in enumerate(ids):
            for b in ids[:i]:
                where.append(f"NOT list_has_any({a}, {b})")
        columns = "".join(f", {NODE.format(a)} AS {v}" for v, a in out.items())
        columns += "".join(f", {REL.format(a)} AS {v}" for v, a in rels.items())
        if path:
            columns += f", {length} AS {path}"
            self.scope[path] = "path"
        self.scope |= {v: "node" for v in out} | {v: "rel" for v in rels}
        condition = self.condition(d.choice([0, 1, 2])) if self.chance(.35) else None
        self.cypher.append(("OPTIONAL " if optional else "") + "MATCH " + ", ".join(texts) +
                           (f" WHERE {condition[0]}" if condition else ""))
        prior = self.last
        if optional:
            self.table(f"SELECT *, row_number() OVER () AS rn FROM {prior}")
            prior = self.last
        tables = ", ".join([f"{prior} q"] + [f"{t} {alias}" for t, alias in new])
        sql = f"SELECT q.*{columns} FROM {tables} WHERE {' AND '.join(where) or 'true'}"
        if condition:
            sql = f"SELECT * FROM ({sql}) WHERE {condition[1]}"
        self.table(sql)
        if optional:
            self.table(f"SELECT * EXCLUDE (rn) FROM {self.last} UNION ALL BY NAME SELECT * EXCLUDE (rn) FROM {prior} "
                       f"WHERE rn NOT IN (SELECT rn FROM {self.last})")

    def unwind(self):
        d, v = self.draw, self.name("x")
        lists = self.of("list")
        if lists and self.chance(.7):
            at = d.choice(lists)
            text, sql = at, at
        elif self.chance(.3):
            text, sql = "range(-1, 2)", "range(-1, 3)"
        else:
            items = [d.choice(["1", "2", "-1", "null"]) for _ in range(d.randint(0, 3))]
            text = f"[{', '.join(items)}]"
            sql = text + "::BIGINT[]"
        self.cypher.append(f"UNWIND {text} AS {v}")
        self.table(f"SELECT *, unnest({sql}) AS {v} FROM {self.last}")
        self.scope[v] = "int"

    def aggregate(self):
        d, pick = self.draw, self.draw.random()
        if pick < .3:
            return "count(*)", "count(*)", "int"
        value = self.number(1)
        if pick < .5:
            which = d.choice(["", "DISTINCT "])
            return f"count({which}{value[0]})", f"count({which}{value[1]})", "int"
        if pick < .62:
            return f"sum({value[0]})", f"coalesce(sum({value[1]}), 0)", "int"
        if pick < .7:
            return f"avg({value[0]})", f"avg({value[1]})", "int"
        if pick < .85:
            f = d.choice(["min", "max"])
            value, kind = (self.text(), "text") if self.chance(.4) else (value, "int")
            return f"{f}({value[0]})", f"{f}({value[1]})", kind
        which = d.choice(["", "DISTINCT "])
        return (f"size(collect({which}{value[0]}))", f"count({which}{value[1]})", "int")

    def order(self, items, final):
        """ORDER BY all columns, and perhaps SKIP and LIMIT. In openCypher null is greater than all."""
        d, text, sql = self.draw, [], []
        for _, _, name, kind, _ in d.sample(items, len(items)):
            by, way = name + (".id" if kind == "node" else ""), d.choice(["", " DESC"])
            text.append(by + way)
            sql.append(by + way + (" NULLS FIRST" if way else " NULLS LAST"))
        rows, skip = d.choice([1, 3, 10]), d.choice([0, 2])
        limits = ("", "") if final and self.chance(.4) else (f" SKIP {skip} LIMIT {rows}", f" LIMIT {rows} OFFSET {skip}")
        return " ORDER BY " + ", ".join(text) + limits[0], " ORDER BY " + ", ".join(sql) + limits[1]

    def key(self, sql):
        """A key of GROUP BY. A constant would be the number of a column."""
        if sql[0] == "'":
            return f"({sql} || '')"
        return f"({sql} + 0 * one)" if sql.lstrip("-").isdigit() else f"({sql})"

    def project(self, final):
        """WITH or RETURN."""
        d, items = self.draw, []  # of text, SQL, name and kind; and whether it aggregates
        grouped = self.chance(.4)
        distinct = "DISTINCT " if not grouped and self.chance(.25) else ""
        whole = () if final or grouped or distinct else ("path", "list")  # SQL knows paths by their length alone
        keep = self.of("node", "rel", *whole)
        for v in d.sample(keep, min(len(keep), d.randint(0 if final else 1, 2))):
            if final:
                of = "id" if self.scope[v] == "node" else "k"
                items.append((f"{v}.{of}", f"{v}.{of}", self.name("c"), "int", False))
            else:
                items.append((v, v, v, self.scope[v], False))
        for _ in range(d.randint(0 if items else 1, 2)):
            value, kind = (self.text(), "text") if self.chance(.3) else (self.number(), "int")
            items.append((*value, self.name("c"), kind, False))
        for _ in range(d.randint(1, 2) if grouped else 0):
            text, sql, kind = self.aggregate()
            items.append((text, sql, self.name("c"), kind, True))
        if grouped and not final and self.chance(.3):
            value = self.number(1)
            items.append((f"collect({value[0]})", f"coalesce(list({value[1]}) FILTER (({value[1]}) IS NOT NULL), [])",
                          self.name("l"), "list", True))
        text = ("RETURN " if final else "WITH ") + distinct + ", ".join(
            i[0] if i[0] == i[2] else f"{i[0]} AS {i[2]}" for i in items)
        sql = f"SELECT {distinct}{', '.join(f'{i[1]} AS {i[2]}' for i in items)} FROM {self.last}"
        keys = [i[1] for i in items if not i[4]]
        if grouped and keys:
            sql += " GROUP BY " + ", ".join(self.key(k) for k in keys)
        elif grouped:
            sql += " HAVING true"
        ordered = self.chance(.4) and all(i[3] not in ("list", "rel", "path") for i in items)
        if ordered:
            order = self.order(items, final)
            text, sql = text + order[0], f"SELECT * FROM ({sql}){order[1]}"
        self.scope = {i[2]: i[3] for i in items}
        if not final:
            sql = f"SELECT 1 AS one, * FROM ({sql})"
            if self.chance(.3):
                condition = self.condition()
                text += f" WHERE {condition[0]}"
                sql = f"SELECT * FROM ({sql}) WHERE {condition[1]}"
        self.cypher.append(text)
        self.table(sql)
        return ordered

    def returned(self, names):
        """A RETURN of numbers, for a side of UNION."""
        values = [self.number() for _ in names]
        self.cypher.append("RETURN " + ", ".join(f"{v[0]} AS {n}" for v, n in zip(values, names)))
        self.table(f"SELECT {', '.join(f'{v[1]} AS {n}' for v, n in zip(values, names))} FROM {self.last}")

    def texts(self):
        return " ".join(self.cypher), f"WITH {', '.join(self.ctes)} SELECT * FROM {self.last}"


def drawn(seed, number):
    """A statement, its SQL, and whether its rows have an order."""
    draw = random.Random(f"{seed} {number}")
    if draw.random() < .05:
        sides, union = [], draw.choice([" UNION ", " UNION ALL "])
        for _ in range(2):
            q = chain(draw)
            q.returned(["u1", "u2"])
            sides.append(q.texts())
        return union.join(s[0] for s in sides), union.join(f"(FROM ({s[1]}))" for s in sides), False
    q = chain(draw)
    ordered = q.project(True)
    return *q.texts(), ordered


def chain(draw):
    """The clauses before RETURN."""
    q = Query(draw)
    q.match(False) if q.chance(.85) else q.unwind()
    for _ in range(q.draw.choice([0, 0, 1, 1, 2])):
        step = q.draw.random()
        if step < .35:
            q.match(bool(q.of("node")) and q.chance(.6))
        elif step < .5:
            q.unwind()
        elif q.scope:
            q.project(False)
    return q


def words(rows):
    """true and false as gdb's JSON has them."""
    return [[{True: "true", False: "false"}[v] if isinstance(v, bool) else v for v in row] for row in rows]


def compare(args, number, duck, gdb):
    """What became of a statement: one of the words of main."""
    cypher, sql, ordered = drawn(args.seed, number)
    answers = []
    for name, peer, text in (("DuckDB", duck, sql), ("gdb", gdb, cypher)):
        try:
            answers.append(plainly(words(peer.ask(text, args.limit)[0]), ordered))
        except engines.Failed as error:
            if str(error) == "limit":
                print(f"{number}: past the limit of {name}:\n  {cypher}")
                return f"past the limit of {name}"
            print(f"{number}: refused by {name}: {error}\n  {cypher}\n  {sql if peer is duck else ''}")
            return f"refused by {name}"
    if answers[0] == answers[1]:
        return "same" if answers[0] else "same, without rows"
    print(f"{number}: different:\n  {cypher}\n  {sql}\n  DuckDB {len(answers[0])} rows {str(answers[0])[:300]}\n"
          f"  gdb    {len(answers[1])} rows {str(answers[1])[:300]}")
    return "different"


def said(counts):
    """The counts in one line."""
    return "; ".join(f"{n} {what}" for what, n in counts.items())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gdb", default="gdb")
    p.add_argument("--work", type=Path, required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--first", type=int, default=0, help="number of the first statement")
    p.add_argument("--count", type=int, default=5000)
    p.add_argument("--limit", type=float, default=10)
    args = p.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    dir, tables = args.work / "random", graph(args.seed)
    tables.write(dir)
    gdb, duck = engines.Gdb(dir, 2, "256MiB", args.gdb), engines.Package("duckdb", dir, 2)
    for peer in (gdb, duck):
        peer.load(tables, dir)
    for view in views(tables):
        duck.ask(view, args.limit)
    counts = dict.fromkeys(("same", "same, without rows", "different", "refused by gdb", "refused by DuckDB",
                            "past the limit of gdb", "past the limit of DuckDB"), 0)
    try:
        for number in range(args.first, args.first + args.count):
            counts[compare(args, number, duck, gdb)] += 1
            if (number - args.first) % 500 == 499:
                print(f"so far: {said(counts)}")
    except KeyboardInterrupt:
        pass
    print(said(counts))
    gdb.close()
    duck.close()
    sys.exit(counts["different"] + counts["refused by gdb"] + counts["refused by DuckDB"] > 0)


if __name__ == "__main__":
    main()
