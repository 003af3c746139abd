// Audit, must find nothing: records that an active link retires and that are current all the same
MATCH (newer)-[s:SUPERSEDES {state: 'ACTIVE', retires: true}]->(older:Memory|Fact {standing: 'CURRENT'})
RETURN older.id AS current, newer.id AS retiredBy
