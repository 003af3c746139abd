// Facts by what they are about; long texts by their segments, to recognise one that is saved again with edits
CREATE RANGE INDEX fact_subject IF NOT EXISTS FOR (n:Fact) ON (n.partition, n.subjectKey);
CREATE FULLTEXT INDEX copies IF NOT EXISTS FOR (n:Memory) ON EACH [n.fingerprints]
  OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: false}};
