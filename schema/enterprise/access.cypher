// Access control inside Neo4j, for Enterprise Edition and Aura; Community refuses every statement here.
//
// graph-mem needs none of it: its own two layers stand in front of every client of the API. This is for people and
// programs that reach the database itself, such as analysts in Neo4j Browser. It is an example to adapt, applied by
// hand, as an administrator, on the database `system`:
//
//   cypher-shell -d system -P "org => 'org_01J...'" -f schema/enterprise/access.cypher
//
// A property-based privilege looks at one property of one node. That is enough here because every node of a tenant
// carries `org`, and every private one carries `owner`. Nobody below may write, so nobody can change either.
// The rules cost time on every read, those on TRAVERSE most: measure before you rely on them.

// 1. The service: everything it needs and no administration. Its schema comes from `graph-mem migrate`, which is run
//    by whoever has the right to create indexes and constraints.
CREATE ROLE graph_mem_service IF NOT EXISTS;
GRANT ACCESS ON DATABASE neo4j TO graph_mem_service;
GRANT MATCH {*} ON GRAPH neo4j TO graph_mem_service;
GRANT WRITE ON GRAPH neo4j TO graph_mem_service;
GRANT NAME MANAGEMENT ON DATABASE neo4j TO graph_mem_service;
GRANT SHOW INDEX ON DATABASE neo4j TO graph_mem_service;
GRANT SHOW CONSTRAINT ON DATABASE neo4j TO graph_mem_service;
GRANT EXECUTE PROCEDURE gds.* ON DBMS TO graph_mem_service;

// 2. An analyst of one organization: its shared records, read only.
CREATE ROLE graph_mem_analyst IF NOT EXISTS;
GRANT ACCESS ON DATABASE neo4j TO graph_mem_analyst;
GRANT MATCH {*} ON GRAPH neo4j FOR (n:Memory|Chunk|Fact|Entity|Version|Event) WHERE n.org = $org TO graph_mem_analyst;
GRANT MATCH {*} ON GRAPH neo4j FOR (n:Client|Deal) WHERE n.org = $org TO graph_mem_analyst;
GRANT MATCH {*} ON GRAPH neo4j FOR (n:Organization) WHERE n.id = $org TO graph_mem_analyst;
GRANT TRAVERSE ON GRAPH neo4j RELATIONSHIPS * TO graph_mem_analyst;
GRANT READ {*} ON GRAPH neo4j RELATIONSHIPS * TO graph_mem_analyst;

//    Private partitions stay closed: a denial outweighs every grant.
DENY TRAVERSE ON GRAPH neo4j FOR (n) WHERE n.owner IS NOT NULL TO graph_mem_analyst;

//    What people asked, and what they hold keys for, is nobody's business.
DENY TRAVERSE ON GRAPH neo4j NODES Trace, RunTrace, AccessEntry, ScratchNote, ApiKey, Idempotency, Job TO graph_mem_analyst;
DENY WRITE ON GRAPH neo4j TO graph_mem_analyst;
