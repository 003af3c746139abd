// Chain of a fact as a picture, with the memories that each value came from and the slot they held
// :param id => 'fact_...'
MATCH (:Fact {id: $id})-[:SUPERSEDES*0..]-(f:Fact)
WITH DISTINCT f
OPTIONAL MATCH replaced = (f)-[:SUPERSEDES]->(:Fact)
OPTIONAL MATCH source = (:Memory)-[:STATES]->(f)
OPTIONAL MATCH seat = (:Slot)-[:CURRENT]->(f)
RETURN f, replaced, source, seat
