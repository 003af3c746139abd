// The neighbourhood of an entity: memories that mention it, facts about it
// :param org => 'org_...'; :param name => 'Northwind'
MATCH (e:Entity {org: $org, name: $name})
OPTIONAL MATCH mentioned = (e)<-[:MENTIONS]-(m:Memory {standing: 'CURRENT'})
OPTIONAL MATCH about = (e)<-[:ABOUT]-(f:Fact {standing: 'CURRENT'})
RETURN e, mentioned, about LIMIT 200
