"""Statements that query.py times: openCypher, what Kuzu writes instead where it differs, and SQL.

Kuzu lets a relationship stand twice in a match, so its statements exclude that where it can happen.
"""


class Statement:
    def __init__(self, name, cypher, sql, kuzu=None, ordered=False):
        self.name, self.cypher, self.sql, self.kuzu, self.ordered = name, cypher, sql, kuzu or cypher, ordered

    def text(self, system):
        return {"gdb": self.cypher, "duckdb": self.sql}.get(system, self.kuzu)


def distances(start, end=None):
    """SQL that reaches nodes level by level, each once, and counts those of each level, or the level of one."""
    reached = (f"WITH RECURSIVE b(n, d) USING KEY (n) AS (SELECT {start}::BIGINT, 0 UNION SELECT e.dst, min(b.d) + 1 FROM b "
               "JOIN edge e ON e.src = b.n LEFT JOIN recurring.b AS r ON r.n = e.dst WHERE r.n IS NULL GROUP BY e.dst) ")
    if end is not None:
        return reached + f"SELECT d FROM b WHERE n = {end}"
    return reached + "SELECT d, count(*) FROM b WHERE d > 0 GROUP BY d"


def plain(hub, far):
    """Statements about a directed graph of one relation. hub is a node with many edges, far pairs of nodes."""
    two = "(a:node)-[e1:edge]->(b:node)-[e2:edge]->(c:node)"
    hops = "FROM edge e1 JOIN edge e2 ON e2.src = e1.dst"
    yield Statement("edges", "MATCH (:node)-[e:edge]->(:node) RETURN count(*)", "SELECT count(*) FROM edge")
    yield Statement("2 hops", f"MATCH {two} RETURN count(*)", f"SELECT count(*) {hops}")
    yield Statement("2 hops by end", f"MATCH {two} WITH c, count(*) AS n RETURN count(*), max(n), sum(n)",
                    f"SELECT count(*), max(n), sum(n) FROM (SELECT e2.dst, count(*) AS n {hops} GROUP BY 1)")
    yield Statement("2 hops, ends", f"MATCH {two} RETURN count(DISTINCT c)", f"SELECT count(DISTINCT e2.dst) {hops}")
    yield Statement("2 hops of a hub", f"MATCH {two} WHERE a.id = {hub} RETURN count(*), count(DISTINCT c)",
                    f"SELECT count(*), count(DISTINCT e2.dst) {hops} WHERE e1.src = {hub}")
    yield Statement("transitive triangles", f"MATCH {two}, (a)-[e3:edge]->(c) RETURN count(*)",
                    f"SELECT count(*) {hops} JOIN edge e3 ON e3.src = e1.src AND e3.dst = e2.dst")
    yield Statement("cyclic triangles", f"MATCH {two}, (c)-[e3:edge]->(a) RETURN count(*)",
                    f"SELECT count(*) {hops} JOIN edge e3 ON e3.src = e2.dst AND e3.dst = e1.src")
    yield Statement("4-cycles", f"MATCH {two}-[e3:edge]->(d:node)-[e4:edge]->(a) RETURN count(*)",
                    f"SELECT count(*) {hops} JOIN edge e3 ON e3.src = e2.dst JOIN edge e4 ON e4.src = e3.dst AND "
                    "e4.dst = e1.src WHERE NOT (e1.src = e2.dst AND e1.dst = e3.dst)",
                    f"MATCH {two}-[e3:edge]->(d:node)-[e4:edge]->(a) WHERE id(e1) <> id(e3) AND id(e2) <> id(e4) "
                    "RETURN count(*)")
    yield Statement("top 5 by degree", "MATCH (:node)-[:edge]->(b:node) RETURN b.id AS id, count(*) AS n ORDER BY n DESC, id "
                    "LIMIT 5", "SELECT dst, count(*) AS n FROM edge GROUP BY dst ORDER BY n DESC, dst LIMIT 5", ordered=True)
    yield Statement("top 5 of a property", "MATCH (a:node)-[:edge]->(b:node) RETURN a.x AS x, count(*) AS n, avg(b.x) AS m "
                    "ORDER BY n DESC, x LIMIT 5", "SELECT a.x, count(*) AS n, avg(b.x) FROM edge e JOIN node a ON a.id = e.src "
                    "JOIN node b ON b.id = e.dst GROUP BY a.x ORDER BY n DESC, a.x LIMIT 5", ordered=True)
    yield Statement("filter, 2 hops", f"MATCH {two} WHERE a.x < 5 RETURN count(*)",
                    f"SELECT count(*) {hops} JOIN node a ON a.id = e1.src WHERE a.x < 5")
    yield Statement("filters, 2 hops", f"MATCH {two} WHERE a.x < 5 AND c.x >= 90 AND b.x <> 50 RETURN count(DISTINCT c.id)",
                    f"SELECT count(DISTINCT c.id) {hops} JOIN node a ON a.id = e1.src JOIN node b ON b.id = e1.dst "
                    "JOIN node c ON c.id = e2.dst WHERE a.x < 5 AND c.x >= 90 AND b.x <> 50")
    for a, b in far:
        ends = f"(a:node {{id: {a}}}), (b:node {{id: {b}}})"
        yield Statement(f"shortest path {a} {b}", f"MATCH {ends} MATCH p = shortestPath((a)-[:edge*]->(b)) RETURN length(p)",
                        distances(a, b), f"MATCH p = (a:node {{id: {a}}})-[:edge* SHORTEST 1..30]->(b:node {{id: {b}}}) "
                        "RETURN length(p)")
    yield Statement("distances from a node", f"MATCH p = shortestPath((a:node {{id: {hub}}})-[:edge*]->(b:node)) WHERE a <> b "
                    "RETURN length(p), count(*)", distances(hub),
                    f"MATCH p = (a:node {{id: {hub}}})-[:edge* SHORTEST 1..30]->(b:node) WHERE b.id <> {hub} "
                    "RETURN length(p), count(*)")


def lsqb():
    """The nine counts of LSQB (Mhedhbi et al., LSQB: a large-scale subgraph query benchmark, 2021). In the sample cities and
    countries are places."""
    def count(name, match, sql, kuzu=None):
        return Statement(name, match + " RETURN count(*)", "SELECT count(*) FROM " + sql,
                         kuzu and kuzu + " RETURN count(*)")
    yield count("LSQB 1", "MATCH (:Place)<-[:isPartOf]-(:Place)<-[:isLocatedIn]-(:Person)<-[:hasMember]-(:Forum)"
                "-[:containerOf]->(:Post)<-[:replyOf]-(:Comment)-[:hasTag]->(:Tag)-[:hasType]->(:TagClass)",
                "isPartOf p JOIN Person_isLocatedIn_Place l ON l.dst = p.src JOIN hasMember m ON m.dst = l.src JOIN containerOf c "
                "ON c.src = m.src JOIN Comment_replyOf_Post r ON r.dst = c.dst JOIN Comment_hasTag_Tag t ON t.src = r.src "
                "JOIN hasType y ON y.src = t.dst")
    yield count("LSQB 2", "MATCH (a:Person)-[:knows]-(b:Person)<-[:hasCreator]-(:Post)<-[:replyOf]-(:Comment)"
                "-[:hasCreator]->(a)",
                "knows_both k JOIN Comment_hasCreator_Person c ON c.dst = k.src JOIN Comment_replyOf_Post r ON r.src = c.src "
                "JOIN Post_hasCreator_Person p ON p.src = r.dst AND p.dst = k.dst")
    yield count("LSQB 3", "MATCH (n:Place), (a:Person)-[:isLocatedIn]->(:Place)-[:isPartOf]->(n), "
                "(b:Person)-[:isLocatedIn]->(:Place)-[:isPartOf]->(n), (c:Person)-[:isLocatedIn]->(:Place)-[:isPartOf]->(n), "
                "(a)-[:knows]-(b)-[:knows]-(c)-[:knows]-(a)",
                "knows_both ab JOIN knows_both bc ON bc.src = ab.dst JOIN knows_both ca ON ca.src = bc.dst AND ca.dst = ab.src "
                "JOIN home a ON a.person = ab.src JOIN home b ON b.person = bc.src AND b.country = a.country "
                "JOIN home c ON c.person = ca.src AND c.country = a.country",
                "MATCH (a:Person)-[k1:knows]-(b:Person)-[k2:knows]-(c:Person)-[k3:knows]-(a), "
                "(a)-[:isLocatedIn]->(:Place)-[:isPartOf]->(n:Place), (b)-[:isLocatedIn]->(:Place)-[:isPartOf]->(n), "
                "(c)-[:isLocatedIn]->(:Place)-[:isPartOf]->(n)")
    message = ("MATCH (:Tag)<-[:hasTag]-(m)-[:hasCreator]->(:Person)", "hasTag t JOIN hasCreator c ON c.src = t.src ")
    yield count("LSQB 4", message[0] + ", (m)<-[:likes]-(:Person), (m)<-[:replyOf]-(:Comment)",
                message[1] + "JOIN likes l ON l.dst = t.src JOIN replyOf r ON r.dst = t.src",
                message[0].replace("(m)", "(m:Post:Comment)") + ", (m)<-[:likes]-(:Person), (m)<-[:replyOf]-(:Comment)")
    tags = ("MATCH (a:Tag)<-[:hasTag]-(m)<-[:replyOf]-(r:Comment)-[:hasTag]->(b:Tag) WHERE a <> b",
            "replyOf r JOIN hasTag a ON a.src = r.dst JOIN Comment_hasTag_Tag b ON b.src = r.src WHERE a.dst <> b.dst")
    kuzu = tags[0].replace("(m)", "(m:Post:Comment)").replace("a <> b", "a.id <> b.id")
    yield count("LSQB 5", tags[0], tags[1], kuzu)
    friends = ("MATCH (a:Person)-[:knows]-(:Person)-[:knows]-(c:Person)-[:hasInterest]->(:Tag) WHERE a <> c",
               "knows_both ab JOIN knows_both bc ON bc.src = ab.dst JOIN hasInterest i ON i.src = bc.dst WHERE ab.src <> bc.dst")
    yield count("LSQB 6", friends[0], friends[1], friends[0].replace("a <> c", "a.id <> c.id"))
    options = " OPTIONAL MATCH (m)<-[:likes]-(:Person) OPTIONAL MATCH (m)<-[:replyOf]-(:Comment)"
    yield count("LSQB 7", message[0] + options,
                message[1] + "LEFT JOIN likes l ON l.dst = t.src LEFT JOIN replyOf r ON r.dst = t.src",
                message[0].replace("(m)", "(m:Post:Comment)") + options)
    yield count("LSQB 8", tags[0] + " AND NOT (r)-[:hasTag]->(a)", tags[1] +
                " AND NOT EXISTS (FROM Comment_hasTag_Tag n WHERE n.src = r.src AND n.dst = a.dst)",
                kuzu + " AND NOT EXISTS { MATCH (r)-[:hasTag]->(a) }")
    yield count("LSQB 9", friends[0] + " AND NOT (a)-[:knows]-(c)", friends[1] +
                " AND NOT EXISTS (FROM knows_both n WHERE n.src = ab.src AND n.dst = bc.dst)",
                friends[0].replace("a <> c", "a.id <> c.id") + " AND NOT EXISTS { MATCH (a)-[:knows]-(c) }")


# What DuckDB has besides the tables of the sample.
LDBC_VIEWS = ["CREATE VIEW home AS SELECT l.src AS person, p.dst AS country FROM Person_isLocatedIn_Place l "
              "JOIN isPartOf p ON p.src = l.dst"]
