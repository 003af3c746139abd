// The audits of graphql-http 1.23.1 (audits/ and utils.mjs beside this file, unchanged) against a server of ours.
// Prints one JSON object: how many audits there were, and the id, name, status and reason of each that is not ok.
import { auditServer } from "./audits/server.mjs";

const [, , url, token] = process.argv;
const fetchFn = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${token}`);
  return fetch(input, { ...init, headers });
};
const results = await auditServer({ url, fetchFn });
const found = results
  .filter((result) => result.status !== "ok")
  .map(({ id, name, status, reason }) => ({ id, name, status, reason }));
console.log(JSON.stringify({ audits: results.length, found }));
