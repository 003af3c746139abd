// How far a restore came
CREATE CONSTRAINT restoration_key IF NOT EXISTS FOR (n:Restoration) REQUIRE n.key IS UNIQUE;
