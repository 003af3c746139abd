// Tenants
CREATE CONSTRAINT organization_id IF NOT EXISTS FOR (n:Organization) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT organization_name IF NOT EXISTS FOR (n:Organization) REQUIRE n.name IS UNIQUE;
CREATE CONSTRAINT user_id IF NOT EXISTS FOR (n:User) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT user_name IF NOT EXISTS FOR (n:User) REQUIRE n.name IS UNIQUE;
CREATE CONSTRAINT client_id IF NOT EXISTS FOR (n:Client) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT client_key IF NOT EXISTS FOR (n:Client) REQUIRE (n.org, n.name) IS UNIQUE;
CREATE CONSTRAINT deal_id IF NOT EXISTS FOR (n:Deal) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT deal_key IF NOT EXISTS FOR (n:Deal) REQUIRE (n.clientId, n.name) IS UNIQUE;
CREATE CONSTRAINT api_key_id IF NOT EXISTS FOR (n:ApiKey) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT api_key_hash IF NOT EXISTS FOR (n:ApiKey) REQUIRE n.hash IS UNIQUE;

// Records
CREATE CONSTRAINT memory_id IF NOT EXISTS FOR (n:Memory) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT memory_dedup IF NOT EXISTS FOR (n:Memory) REQUIRE n.dedupKey IS UNIQUE;
CREATE CONSTRAINT memory_import IF NOT EXISTS FOR (n:Memory) REQUIRE n.importKey IS UNIQUE;
CREATE CONSTRAINT fact_id IF NOT EXISTS FOR (n:Fact) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT fact_one_active IF NOT EXISTS FOR (n:Fact) REQUIRE n.activeKey IS UNIQUE;
CREATE CONSTRAINT slot_key IF NOT EXISTS FOR (n:Slot) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT rejection_key IF NOT EXISTS FOR (n:Rejection) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT chunk_id IF NOT EXISTS FOR (n:Chunk) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT version_id IF NOT EXISTS FOR (n:Version) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT entity_id IF NOT EXISTS FOR (n:Entity) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT entity_key IF NOT EXISTS FOR (n:Entity) REQUIRE n.nameKey IS UNIQUE;
CREATE CONSTRAINT source_key IF NOT EXISTS FOR (n:Source) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT relation_id IF NOT EXISTS FOR ()-[r:RELATES]-() REQUIRE r.id IS UNIQUE;
CREATE CONSTRAINT supersedes_id IF NOT EXISTS FOR ()-[r:SUPERSEDES]-() REQUIRE r.id IS UNIQUE;

// Work, audit, settings
CREATE CONSTRAINT job_id IF NOT EXISTS FOR (n:Job) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT event_id IF NOT EXISTS FOR (n:Event) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT settings_key IF NOT EXISTS FOR (n:Settings) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT idempotency_key IF NOT EXISTS FOR (n:Idempotency) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT lease_name IF NOT EXISTS FOR (n:Lease) REQUIRE n.name IS UNIQUE;
CREATE CONSTRAINT trace_id IF NOT EXISTS FOR (n:Trace) REQUIRE n.id IS UNIQUE;

// Range indexes: look-up, lists, and a clean refusal of oversized filter values before they reach Lucene
CREATE RANGE INDEX memory_partition IF NOT EXISTS FOR (n:Memory) ON (n.partition, n.standing, n.createdAt);
CREATE RANGE INDEX memory_scope IF NOT EXISTS FOR (n:Memory) ON (n.scope);
CREATE RANGE INDEX memory_label IF NOT EXISTS FOR (n:Memory) ON (n.label);
CREATE RANGE INDEX memory_source IF NOT EXISTS FOR (n:Memory) ON (n.sourceKey, n.id);
CREATE RANGE INDEX memory_processing IF NOT EXISTS FOR (n:Memory) ON (n.partition, n.processing);
CREATE RANGE INDEX fact_partition IF NOT EXISTS FOR (n:Fact) ON (n.partition, n.standing, n.createdAt);
CREATE RANGE INDEX fact_scope IF NOT EXISTS FOR (n:Fact) ON (n.scope);
CREATE RANGE INDEX fact_label IF NOT EXISTS FOR (n:Fact) ON (n.label);
CREATE RANGE INDEX fact_slot IF NOT EXISTS FOR (n:Fact) ON (n.slotKey);
CREATE RANGE INDEX chunk_partition IF NOT EXISTS FOR (n:Chunk) ON (n.partition);
CREATE RANGE INDEX chunk_scope IF NOT EXISTS FOR (n:Chunk) ON (n.scope);
CREATE RANGE INDEX chunk_standing IF NOT EXISTS FOR (n:Chunk) ON (n.standing);
CREATE RANGE INDEX chunk_kind IF NOT EXISTS FOR (n:Chunk) ON (n.kind);
CREATE RANGE INDEX chunk_label IF NOT EXISTS FOR (n:Chunk) ON (n.label);
CREATE RANGE INDEX chunk_memory IF NOT EXISTS FOR (n:Chunk) ON (n.memoryId);
CREATE RANGE INDEX fact_standing IF NOT EXISTS FOR (n:Fact) ON (n.standing);
CREATE RANGE INDEX fact_kind IF NOT EXISTS FOR (n:Fact) ON (n.kind);
CREATE RANGE INDEX version_memory IF NOT EXISTS FOR (n:Version) ON (n.memoryId, n.version);
CREATE RANGE INDEX entity_partition IF NOT EXISTS FOR (n:Entity) ON (n.partition, n.name);
CREATE RANGE INDEX job_due IF NOT EXISTS FOR (n:Job) ON (n.runAfter);
CREATE RANGE INDEX job_record IF NOT EXISTS FOR (n:Job) ON (n.recordId);
CREATE RANGE INDEX event_record IF NOT EXISTS FOR (n:Event) ON (n.recordId, n.at);
CREATE RANGE INDEX trace_by IF NOT EXISTS FOR (n:Trace) ON (n.org, n.at);
CREATE RANGE INDEX access_at IF NOT EXISTS FOR (n:AccessEntry) ON (n.org, n.at);
CREATE RANGE INDEX idempotency_expiry IF NOT EXISTS FOR (n:Idempotency) ON (n.expiresAt);

// Search: filters stand inside both indexes, so that a small partition in a big database fills its page.
// Quantization off: with it, entries written while the index is online are scored without rescoring.
CREATE VECTOR INDEX passages IF NOT EXISTS FOR (n:Chunk|Fact) ON (n.embedding)
  WITH [n.partition, n.scope, n.standing, n.kind, n.label, n.validFrom, n.validTo, n.createdAt, n.occurredAt]
  OPTIONS {indexConfig: {`vector.dimensions`: $dimension, `vector.similarity_function`: 'cosine', `vector.quantization.enabled`: false}};
// `pieces` (core/words.py) holds what the analyzer would not find: parts of identifiers, character pairs of scripts
// written without spaces, words without their accents. A memory is Pending until its chunks stand for it.
CREATE FULLTEXT INDEX words IF NOT EXISTS FOR (n:Pending|Chunk|Fact) ON EACH [n.title, n.content, n.keys, n.pieces]
  OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: false}};
CREATE FULLTEXT INDEX entity_names IF NOT EXISTS FOR (n:Entity) ON EACH [n.name, n.aliases, n.keys]
  OPTIONS {indexConfig: {`fulltext.analyzer`: 'standard-folding', `fulltext.eventually_consistent`: false}};
