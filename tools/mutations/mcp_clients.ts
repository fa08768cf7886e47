import type { Mutation } from '../mutation.ts';

const ROW = 'Hosted: MCP clients';
const CONNECTIONS = 'worker/tokens/mcp/mcp_connections.ts';
const REQUEST = 'worker/tokens/mcp/authorisation_request.ts';
const DOCUMENT = 'worker/tokens/mcp/client_document.ts';
const SERVED = 'worker/services/mcp/served/served_tools.ts';
const tests: Mutation['tests'] = ['worker/remote_mcp.test.ts'];

/** Checks of a person's MCP server and its clients (decision 0079). */
export const MCP_CLIENT_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'a code needs the verifier of its challenge',
    file: CONNECTIONS,
    text: ' || !isProven',
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: 'a code is for the redirect URI of its request',
    file: CONNECTIONS,
    text: 'row.redirectUri !== redirectUri || ',
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: 'plain PKCE is refused',
    file: REQUEST,
    text: "query.get('code_challenge_method') !== 'S256' || ",
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: 'a browser is sent only to a redirect URI of the client',
    file: REQUEST,
    text: '!isItsOwn || ',
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: 'a link to the page sends nobody to a client',
    file: 'worker/routes/mcp/client_consent.ts',
    text: '  return consolePage(c, caller, view, 400);\n',
    replacement:
      "  return refusal.to === 'user' ? consolePage(c, caller, view, 400) : Promise.resolve(redirect(c, publicUrl, refusal, refusal.why));\n",
    tests,
  },
  {
    row: ROW,
    holds: 'a document is about the client at its URL',
    file: DOCUMENT,
    text: "  if (document.data.client_id !== id) return err('The document at the URL of this client is about another one.');\n",
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: "a client's document is a stranger's URL",
    file: DOCUMENT,
    text: '    isStrangers: true,\n',
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: "only the client's own pages use its token",
    file: 'worker/routes/mcp/mcp_endpoint.ts',
    text: "  if (!isExpectedOrigin(c, publicUrl, first)) return refuse(c, 403, 'this page is not one of the connected client');\n",
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: 'the MCP server has one name (DNS rebinding)',
    file: 'worker/routes/mcp/public_server.ts',
    text: "    if (!isOwnHost(c, publicUrl)) return errorReply(c, apiError('misdirected_host', OTHER_HOST));\n",
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: 'a tool that nobody has looked at is not called',
    file: SERVED,
    text: "  if (isWaiting) return { reason: 'tool_waiting', message: WAITING };\n",
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: 'the credential of a server is masked in its tools',
    file: SERVED,
    text: 'maskValue(item, patterns)',
    replacement: 'item',
    tests,
  },
  {
    row: ROW,
    holds: 'a header that cannot be sent is not quoted',
    file: 'worker/services/mcp/served/open_server.ts',
    text: '    if (!HEADER_VALUE.test(value)) return null;\n',
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: 'the words of our own failures stay in the log',
    file: 'worker/routes/mcp/mcp_endpoint.ts',
    text: '  if (failures.length > 0) throw failures[0];\n',
    replacement: '',
    tests,
  },
  {
    row: ROW,
    holds: 'a request is one message',
    file: 'worker/routes/mcp/mcp_endpoint.ts',
    text: "  if (Array.isArray(body)) return refuse(c, 400, 'send one message at a time: batches are not supported');\n",
    replacement: '',
    tests,
  },
];
