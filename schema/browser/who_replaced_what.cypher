// Who replaced what in the last days, the newest first
// :param org => 'org_...'; :param days => 7
MATCH (newer:Memory|Fact {org: $org})-[s:SUPERSEDES]->(older)
WHERE s.at > datetime().epochMillis - $days * 86400000
OPTIONAL MATCH (u:User {id: s.by})
RETURN datetime({epochMillis: s.at}) AS at, coalesce(u.name, s.by) AS who,
  coalesce(older.statement, older.title, left(older.text, 80)) AS was,
  coalesce(newer.statement, newer.title, left(newer.text, 80)) AS now, s.reason AS why, s.state AS link
ORDER BY s.at DESC LIMIT 200
