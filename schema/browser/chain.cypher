// Chain of a record: all that replaced it and all that it replaced, as a picture
// :param id => 'fact_...'
MATCH (r:Memory|Fact {id: $id})
MATCH path = (:Memory|Fact)-[:SUPERSEDES*0..]->(r)
RETURN path
UNION
MATCH (r:Memory|Fact {id: $id})
MATCH path = (r)-[:SUPERSEDES*0..]->(:Memory|Fact)
RETURN path
