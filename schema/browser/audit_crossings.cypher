// Audit, must find nothing: links between records of different organizations or owners
MATCH (a:Memory|Fact)-[r:SUPERSEDES|RELATES|FOLDED_INTO]->(b:Memory|Fact)
WHERE a.partition <> b.partition
RETURN type(r) AS link, a.id AS from, b.id AS to
