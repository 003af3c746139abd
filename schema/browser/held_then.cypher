// What held at a moment, by what is known today
// :param org => 'org_...'; :param at => '2026-06-01T00:00:00Z'
WITH datetime($at).epochMillis AS at
MATCH (f:Fact {org: $org})
WHERE f.standing IN ['CURRENT', 'SUPERSEDED'] AND f.validFrom <= at AND f.validTo > at
RETURN f.subject AS subject, f.relation AS relation, f.statement AS statement, f.standing AS today,
  datetime({epochMillis: f.validFrom}) AS since
ORDER BY subject, relation LIMIT 500
