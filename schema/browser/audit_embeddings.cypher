// Audit, must find nothing: passages that the vector index leaves out
// :param dimension => 384
MATCH (n:Chunk|Fact)
WHERE n.embedding IS NOT NULL AND size(n.embedding) <> $dimension
RETURN n.id AS id, size(n.embedding) AS numbers
