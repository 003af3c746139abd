// The slots that were revised most often
// :param org => 'org_...'
MATCH (s:Slot {org: $org}) WHERE s.rev > 1
OPTIONAL MATCH (s)-[:CURRENT]->(f:Fact)
RETURN s.subject AS subject, s.relation AS relation, s.rev AS revisions, f.statement AS now,
  datetime({epochMillis: s.at}) AS lastChanged
ORDER BY revisions DESC LIMIT 50
