// What is true of a subject, and what was: its slots with their facts, as a picture
// :param org => 'org_...'; :param subject => 'northwind'
MATCH (f:Fact {org: $org, subjectKey: toLower($subject)})
MATCH (s:Slot {key: f.slotKey})
OPTIONAL MATCH current = (s)-[:CURRENT]->(f)
OPTIONAL MATCH replaced = (f)-[:SUPERSEDES]->(:Fact)
RETURN s, f, current, replaced LIMIT 300
