// Current records that nobody validated for a year, the longest first
// :param org => 'org_...'; :param days => 365
MATCH (r:Memory|Fact {org: $org, standing: 'CURRENT'})
WHERE coalesce(r.lastValidatedAt, r.createdAt) < datetime().epochMillis - $days * 86400000
RETURN r.id AS id, r.label AS label, coalesce(r.statement, r.title, left(r.text, 80)) AS what,
  datetime({epochMillis: coalesce(r.lastValidatedAt, r.createdAt)}) AS lastValidated, coalesce(r.retrievals, 0) AS retrievals
ORDER BY coalesce(r.lastValidatedAt, r.createdAt) LIMIT 200
