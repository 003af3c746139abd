// Review
CREATE CONSTRAINT proposal_id IF NOT EXISTS FOR (n:Proposal) REQUIRE n.id IS UNIQUE;
CREATE CONSTRAINT proposal_key IF NOT EXISTS FOR (n:Proposal) REQUIRE n.key IS UNIQUE;
CREATE CONSTRAINT snapshot_proposal IF NOT EXISTS FOR (n:Snapshot) REQUIRE n.proposalId IS UNIQUE;
CREATE CONSTRAINT rehearsal_record IF NOT EXISTS FOR (n:Rehearsal) REQUIRE n.recordId IS UNIQUE;
CREATE CONSTRAINT tombstone_key IF NOT EXISTS FOR (n:Tombstone) REQUIRE n.key IS UNIQUE;
CREATE RANGE INDEX proposal_queue IF NOT EXISTS FOR (n:Proposal) ON (n.partition, n.state, n.id);
CREATE RANGE INDEX proposal_scope IF NOT EXISTS FOR (n:Proposal) ON (n.scope);
CREATE RANGE INDEX proposal_changed IF NOT EXISTS FOR (n:Proposal) ON (n.partition, n.changedAt);
CREATE RANGE INDEX snapshot_order IF NOT EXISTS FOR (n:Snapshot) ON (n.partition, n.seq);
CREATE RANGE INDEX rehearsal_due IF NOT EXISTS FOR (n:Rehearsal) ON (n.partition, n.dueAt);
CREATE RANGE INDEX entity_merged IF NOT EXISTS FOR (n:Entity) ON (n.mergedInto);
CREATE RANGE INDEX event_kind IF NOT EXISTS FOR (n:Event) ON (n.org, n.kind, n.at);
