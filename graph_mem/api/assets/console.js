"use strict";

// The token arrives behind the #, which a browser never sends: it is in no log. It is taken out of the address
// at once and kept for this tab only.
const KEY = "graph-mem token";
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", location.pathname + location.search);
}
const token = given || sessionStorage.getItem(KEY) || "";

const endpoint = new URL("graphql", location.href);
const socket = new URL(endpoint);
socket.protocol = endpoint.protocol === "https:" ? "wss:" : "ws:";

const authorization = { Authorization: `Bearer ${token || "<token: graph-mem token>"}` };

const WELCOME = `# Ctrl-Enter runs the operation under the cursor; Ctrl-Space completes.
# The token stands in the headers below.

query Search {
  search(input: { text: "what did we decide" }) {
    mode
    hits { rank tier score { final } snippet node { id standing } }
  }
}

query WhoAmI {
  viewer { organization { name } userId role assignments { level clientId dealId } }
}
`;

ReactDOM.createRoot(document.getElementById("graphiql")).render(
  React.createElement(GraphiQL, {
    fetcher: GraphiQL.createFetcher({
      url: endpoint.href,
      subscriptionUrl: socket.href,
      headers: token ? authorization : {},
      wsConnectionParams: token ? authorization : {},
    }),
    defaultQuery: WELCOME,
    defaultHeaders: JSON.stringify(authorization, null, 2),
    plugins: [GraphiQLPluginExplorer.explorerPlugin()],
    defaultEditorToolsVisibility: "headers",
    inputValueDeprecation: true,
    isHeadersEditorEnabled: true,
    shouldPersistHeaders: false,
  }),
);
