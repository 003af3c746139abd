// Everything that happened to a record; it answers for erased ones too
// :param id => 'mem_...'
MATCH (e:Event {recordId: $id})
OPTIONAL MATCH (u:User {id: e.by})
RETURN datetime({epochMillis: e.at}) AS at, e.kind AS what, e.version AS version, coalesce(u.name, e.by) AS who,
  e.detail AS detail, e.strength AS strength
ORDER BY e.at, e.id
