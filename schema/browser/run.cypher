// Everything a run saw, as a picture: its account, the records it held, and what these are about
// :param runId => 'run-42'; :param org => 'org_...'
MATCH (t:RunTrace {org: $org, runId: $runId})
OPTIONAL MATCH (r:Memory|Fact {org: $org}) WHERE r.id IN t.recordIds
OPTIONAL MATCH about = (r)-[:MENTIONS|ABOUT]->(:Entity)
OPTIONAL MATCH replaced = (:Memory|Fact)-[:SUPERSEDES]->(r)
RETURN t, r, about, replaced
