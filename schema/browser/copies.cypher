// Texts that were saved most often: what was folded into them
// :param org => 'org_...'
MATCH (m:Memory {org: $org}) WHERE m.foldCount > 0
RETURN m.id AS id, coalesce(m.title, left(m.text, 80)) AS what, m.foldCount AS copies,
  datetime({epochMillis: m.freshAt}) AS lastSaved
ORDER BY copies DESC LIMIT 50
