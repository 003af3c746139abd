// What changed in the last days, by kind of change
// :param org => 'org_...'; :param days => 7
MATCH (e:Event {org: $org})
WHERE e.at > datetime().epochMillis - $days * 86400000
RETURN e.kind AS change, count(*) AS times, count(DISTINCT e.recordId) AS records,
  datetime({epochMillis: max(e.at)}) AS last, collect(DISTINCT e.recordId)[..5] AS someRecords
ORDER BY times DESC
