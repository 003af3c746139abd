// Chain of a record as a table: who replaced what, when, why
// :param id => 'fact_...'
MATCH (r:Memory|Fact {id: $id})-[:SUPERSEDES*0..]-(n)
WITH DISTINCT n
OPTIONAL MATCH (newer)-[s:SUPERSEDES]->(n)
RETURN coalesce(n.statement, n.title, left(n.text, 80)) AS what, n.standing AS standing,
  datetime({epochMillis: n.createdAt}) AS saved, n.author AS by,
  coalesce(newer.statement, newer.title, left(newer.text, 80)) AS replacedBy, s.by AS who,
  CASE WHEN s.at IS NOT NULL THEN datetime({epochMillis: s.at}) END AS at, s.reason AS why, s.state AS link
ORDER BY n.createdAt
