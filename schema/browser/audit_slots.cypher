// Audit, must find nothing: slots whose current fact is not the one that holds the seat
MATCH (f:Fact) WHERE f.activeKey IS NOT NULL OR f.standing = 'CURRENT'
WITH f.slotKey AS key, collect(f) AS facts
OPTIONAL MATCH (:Slot {key: key})-[:CURRENT]->(c:Fact)
WITH key, facts, collect(c) AS seated
WHERE size(facts) <> size(seated) OR any(f IN facts WHERE NOT f IN seated OR f.activeKey IS NULL OR f.standing <> 'CURRENT')
  OR size([f IN facts WHERE f.activeKey = f.seat]) <> size(facts)
RETURN key, [f IN facts | f.id] AS facts
