// Why facts changed: the memories behind the old value and the new one
// :param org => 'org_...'
MATCH (new:Fact {org: $org})-[s:SUPERSEDES]->(old:Fact)
RETURN new.subject AS subject, new.relation AS relation, old.statement AS was, new.statement AS now,
  datetime({epochMillis: s.at}) AS at,
  [(m:Memory)-[:STATES]->(old) | coalesce(m.title, left(m.text, 60))] AS oldSources,
  [(m:Memory)-[:STATES]->(new) | coalesce(m.title, left(m.text, 60))] AS newSources
ORDER BY s.at DESC LIMIT 100
