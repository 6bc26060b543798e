"""Statements that query.py times: openCypher, what Kuzu writes instead where it differs, and SQL.

Where Kuzu's is None it is not asked. Kuzu lets a relationship stand twice in a match, so its statements exclude that where it can
happen.
"""


class Statement:
    def __init__(self, name, cypher, sql, kuzu="", ordered=False):
        self.name, self.cypher, self.sql, self.kuzu, self.ordered = name, cypher, sql, kuzu, ordered

    def text(self, system):
        return {"gdb": self.cypher, "duckdb": self.sql}.get(system, self.cypher if self.kuzu == "" else self.kuzu)


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
    def count(name, match, sql, kuzu=""):
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
    yield count("LSQB 3", "MATCH (a:Person)-[:isLocatedIn]->(:Place)-[:isPartOf]->(n:Place) "
                "MATCH (b:Person)-[:isLocatedIn]->(:Place)-[:isPartOf]->(n) "  # a MATCH of its own: cities may be the same
                "MATCH (c:Person)-[:isLocatedIn]->(:Place)-[:isPartOf]->(n) MATCH (a)-[:knows]-(b)-[:knows]-(c)-[:knows]-(a)",
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


def reads(person, other, message):
    """Reads like those of LDBC's interactive workload: short ones (IS) about a person or a message, complex ones (IC). Kuzu is not
    asked: its nodes and relationships of several tables need other statements."""
    def read(name, cypher, sql, ordered=True):
        return Statement(name, cypher, sql, kuzu=None, ordered=ordered)
    p, m = f"(p:Person) WHERE p.id = {person}", f"(m) WHERE m.id = {message}"
    person_of = f"MATCH {p} MATCH "
    yield read("IS 1", person_of + "(p)-[:isLocatedIn]->(c) RETURN p.number, p.x, c.id",
               f"SELECT p.number, p.x, l.dst FROM Person p JOIN Person_isLocatedIn_Place l ON l.src = p.id WHERE p.id = {person}")
    yield read("IS 2", person_of + "(p)<-[:hasCreator]-(m) OPTIONAL MATCH (m)-[:replyOf]->(o)-[:hasCreator]->(a) "
               "RETURN m.id AS m, o.id AS o, a.id AS a ORDER BY m DESC, o LIMIT 10",
               "SELECT c.src, r.dst, a.dst FROM hasCreator c LEFT JOIN (replyOf r JOIN hasCreator a ON a.src = r.dst) ON r.src = c.src "
               f"WHERE c.dst = {person} ORDER BY 1 DESC, 2 LIMIT 10")
    yield read("IS 3", person_of + "(p)-[k:knows]-(f) RETURN f.id AS f, k.since AS since ORDER BY since DESC, f",
               f"SELECT CASE src WHEN {person} THEN dst ELSE src END AS f, since FROM knows WHERE {person} IN (src, dst) "
               "ORDER BY since DESC, f")
    yield read("IS 4", f"MATCH {m} RETURN m.number, m.x, labels(m)[0]",
               f"SELECT number, x, 'Post' FROM Post WHERE id = {message} UNION ALL SELECT number, x, 'Comment' FROM Comment "
               f"WHERE id = {message}")
    yield read("IS 5", f"MATCH {m} MATCH (m)-[:hasCreator]->(a) RETURN a.id, a.number",
               f"SELECT a.id, a.number FROM hasCreator c JOIN Person a ON a.id = c.dst WHERE c.src = {message}")
    yield read("IS 6", f"MATCH {m} MATCH (m)<-[:replyOf*0..]-(c)-[:hasCreator]->(a:Person) RETURN count(c), count(DISTINCT a)",
               f"WITH RECURSIVE t(n) AS (SELECT {message} UNION ALL SELECT r.src FROM t JOIN replyOf r ON r.dst = t.n) "
               "SELECT count(*), count(DISTINCT c.dst) FROM t JOIN hasCreator c ON c.src = t.n")
    yield read("IS 7", f"MATCH {m} MATCH (m)<-[:replyOf]-(c)-[:hasCreator]->(a) OPTIONAL MATCH (m)-[:hasCreator]->(w)-[k:knows]-(a) "
               "RETURN c.id AS c, a.id AS a, count(k) AS k ORDER BY c DESC",
               "SELECT r.src, c.dst, count(k.src) FROM replyOf r JOIN hasCreator c ON c.src = r.src JOIN hasCreator w ON "
               f"w.src = r.dst LEFT JOIN knows_both k ON k.src = w.dst AND k.dst = c.dst WHERE r.dst = {message} GROUP BY 1, 2 "
               "ORDER BY 1 DESC")
    near = (f"friends AS (SELECT DISTINCT y.dst AS f FROM knows_both x JOIN knows_both y ON y.src = x.dst WHERE x.src = {person} "
            f"AND y.dst <> {person} UNION SELECT dst FROM knows_both WHERE src = {person}) ")
    friends = person_of + "(p)-[:knows*1..2]-(f) WHERE f <> p WITH DISTINCT f "
    yield read("IC 1", f"MATCH w = shortestPath((p:Person)-[:knows*1..3]-(f:Person)) WHERE p.id = {person} AND f <> p "
               "RETURN f.id AS f, length(w) AS d ORDER BY d, f LIMIT 20",
               f"WITH a AS (SELECT dst AS f, 1 AS d FROM knows_both WHERE src = {person}), b AS (SELECT k.dst AS f, 2 AS d FROM a "
               "JOIN knows_both k ON k.src = a.f), c AS (SELECT k.dst AS f, 3 AS d FROM b JOIN knows_both k ON k.src = b.f) "
               "SELECT f, min(d) AS d FROM (FROM a UNION ALL FROM b UNION ALL FROM c) "
               f"WHERE f <> {person} GROUP BY f ORDER BY d, f LIMIT 20")
    yield read("IC 2", person_of + "(p)-[:knows]-(f)<-[:hasCreator]-(m) RETURN m.id AS m, f.id AS f ORDER BY m DESC LIMIT 20",
               f"SELECT c.src, k.dst FROM knows_both k JOIN hasCreator c ON c.dst = k.dst WHERE k.src = {person} "
               "ORDER BY 1 DESC LIMIT 20")
    yield read("IC 4", person_of + "(p)-[:knows]-(f)<-[:hasCreator]-(:Post)-[:hasTag]->(t:Tag) RETURN t.id AS t, count(*) AS n "
               "ORDER BY n DESC, t LIMIT 10",
               "SELECT t.dst, count(*) AS n FROM knows_both k JOIN Post_hasCreator_Person c ON c.dst = k.dst JOIN Post_hasTag_Tag t "
               f"ON t.src = c.src WHERE k.src = {person} GROUP BY 1 ORDER BY n DESC, 1 LIMIT 10")
    yield read("IC 5", friends + "MATCH (f)<-[j:hasMember]-(o:Forum) WHERE j.since > 1330000000000 "
               "OPTIONAL MATCH (o)-[:containerOf]->(post)-[:hasCreator]->(f) RETURN o.id AS o, count(post) AS n "
               "ORDER BY n DESC, o LIMIT 20",
               f"WITH {near} SELECT j.src AS o, count(c.dst) AS n FROM friends JOIN hasMember j ON j.dst = f LEFT JOIN "
               "(containerOf c JOIN Post_hasCreator_Person a ON a.src = c.dst) ON c.src = j.src AND a.dst = f "
               "WHERE j.since > 1330000000000 GROUP BY 1 ORDER BY n DESC, o LIMIT 20")
    yield read("IC 7", person_of + "(p)<-[:hasCreator]-(m)<-[l:likes]-(f:Person) WITH f, max(l.since) AS last, count(m) AS n "
               "RETURN f.id AS f, last, n ORDER BY last DESC, f LIMIT 20",
               "SELECT l.src, max(l.since) AS last, count(*) FROM hasCreator c JOIN likes l ON l.dst = c.src "
               f"WHERE c.dst = {person} GROUP BY 1 ORDER BY last DESC, 1 LIMIT 20")
    yield read("IC 11", friends + "MATCH (f)-[w:workAt]->(o)-[:isLocatedIn]->(c:Place) WHERE w.since < 2006 "
               "RETURN f.id AS f, o.id AS o, w.since AS since, c.id ORDER BY since, f, o LIMIT 10",
               f"WITH {near} SELECT f, w.dst, w.since, l.dst FROM friends JOIN workAt w ON w.src = f JOIN "
               "Organisation_isLocatedIn_Place l ON l.src = w.dst WHERE w.since < 2006 ORDER BY w.since, f, w.dst LIMIT 10")
    yield read("IC 12", person_of + "(p)-[:knows]-(f)<-[:hasCreator]-(c:Comment)-[:replyOf]->(:Post)-[:hasTag]->(t)-[:hasType]->(y) "
               "RETURN y.id AS y, count(DISTINCT c) AS n, count(DISTINCT t) ORDER BY n DESC, y LIMIT 20",
               "SELECT y.dst, count(DISTINCT c.src) AS n, count(DISTINCT t.dst) FROM knows_both k JOIN Comment_hasCreator_Person c "
               "ON c.dst = k.dst JOIN Comment_replyOf_Post r ON r.src = c.src JOIN Post_hasTag_Tag t ON t.src = r.dst JOIN hasType y "
               f"ON y.src = t.dst WHERE k.src = {person} GROUP BY 1 ORDER BY n DESC, 1 LIMIT 20")
    yield read("IC 13", f"MATCH (a:Person), (b:Person) WHERE a.id = {person} AND b.id = {other} "
               "OPTIONAL MATCH w = shortestPath((a)-[:knows*]-(b)) RETURN coalesce(length(w), -1)",
               "SELECT coalesce((" + distances(person, other).replace("edge e", "knows_both e") + "), -1)")


# What DuckDB has besides the tables of the sample.
LDBC_VIEWS = ["CREATE VIEW home AS SELECT l.src AS person, p.dst AS country FROM Person_isLocatedIn_Place l "
              "JOIN isPartOf p ON p.src = l.dst"]
