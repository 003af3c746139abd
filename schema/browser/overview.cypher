// How much is shared and how much private, by place and standing; no content
// :param org => 'org_...'
MATCH (r:Memory|Fact {org: $org})
RETURN CASE WHEN r.owner IS NULL THEN 'shared' ELSE 'private' END AS whose, r.level AS level, r.kind AS kind,
  r.standing AS standing, count(*) AS records, count(DISTINCT r.owner) AS owners,
  datetime({epochMillis: max(r.createdAt)}) AS newest
ORDER BY whose DESC, level, kind, records DESC
