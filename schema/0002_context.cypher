// Canon and its former versions
CREATE CONSTRAINT policy_id IF NOT EXISTS FOR (n:Policy) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT policy_key IF NOT EXISTS FOR (n:Policy) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT policy_version_id IF NOT EXISTS FOR (n:PolicyVersion) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT variable_id IF NOT EXISTS FOR (n:Variable) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT variable_key IF NOT EXISTS FOR (n:Variable) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT variable_version_id IF NOT EXISTS FOR (n:VariableVersion) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT pin_id IF NOT EXISTS FOR (n:Pin) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT pin_key IF NOT EXISTS FOR (n:Pin) REQUIRE n.key IS UNIQUE;

// Runs
CREATE CONSTRAINT run_trace_id IF NOT EXISTS FOR (n:RunTrace) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT scratch_note_id IF NOT EXISTS FOR (n:ScratchNote) REQUIRE n.id IS UNIQUE;

// Look-up
CREATE RANGE INDEX policy_scope IF NOT EXISTS FOR (n:Policy) ON (n.partition, n.scope);
CREATE RANGE INDEX variable_scope IF NOT EXISTS FOR (n:Variable) ON (n.partition, n.scope);
CREATE RANGE INDEX pin_scope IF NOT EXISTS FOR (n:Pin) ON (n.partition, n.scope);
CREATE RANGE INDEX pin_memory IF NOT EXISTS FOR (n:Pin) ON (n.memoryId);
CREATE RANGE INDEX run_trace_run IF NOT EXISTS FOR (n:RunTrace) ON (n.runKey, n.at);
CREATE RANGE INDEX run_trace_org IF NOT EXISTS FOR (n:RunTrace) ON (n.org);
CREATE RANGE INDEX scratch_note_run IF NOT EXISTS FOR (n:ScratchNote) ON (n.runKey, n.partition);
CREATE RANGE INDEX scratch_note_expiry IF NOT EXISTS FOR (n:ScratchNote) ON (n.expiresAt);
