import { Secret } from '../../../shared/model/secret.ts';
import { mcpAuthorizationInput, mcpAuthorizeReply } from '../../../shared/wire/mcp/mcp_authorization.ts';
import {
  mcpCredentialInput,
  mcpCredentialParams,
  mcpCredentialReply,
  mcpRevisionsReply,
  mcpRollbackInput,
  mcpServerInput,
  mcpServerHeaders,
  mcpServerReplacement,
  mcpServerParams,
  mcpServerRecord,
  mcpServersPage,
  mcpServersQuery,
} from '../../../shared/wire/mcp/mcp_servers.ts';
import { mcpToolsAcceptInput, mcpToolsReply } from '../../../shared/wire/mcp/mcp_tools.ts';
import { beginMcpAuthorisation, removeMcpAuthorisation } from '../../services/mcp/mcp_authorisation.ts';
import { removeMcpCredential, storeMcpCredential } from '../../services/mcp/mcp_credentials.ts';
import {
  createMcpServer,
  getMcpServer as findMcpServer,
  listMcpServerPage,
  listMcpServerRevisions,
  putMcpServer as replaceMcpServer,
  removeMcpServer,
  rollbackMcpServer,
} from '../../services/mcp/mcp_servers.ts';
import { acceptTools, listTools } from '../../services/mcp/mcp_tools.ts';
import { redirectOrigin } from './connector_authorisation.ts';
import { removalPreview } from '../../../shared/wire/removals.ts';
import { previewServerRemoval } from '../../services/vault/removal_preview.ts';
import { expectedRevision } from '../http/expected_revision.ts';
import { forUser } from '../http/operation.ts';
import { changeReply, jsonReply } from '../http/replies.ts';

export const postMcpServer = forUser({
  summary: 'Register an MCP server',
  description:
    'Write a reference to a credential as vault://mcp-servers/{id}/NAME, with "{id}" literally; the server’s id replaces it. A command that can run arbitrary code from its arguments is refused.',
  body: mcpServerInput,
  replies: { 201: mcpServerRecord },
  async handle({ context, who, body }) {
    return changeReply(await createMcpServer(context, who, body), (server) => ({ status: 201, json: server }));
  },
});

export const getMcpServers = forUser({
  summary: 'List MCP servers',
  query: mcpServersQuery,
  replies: { 200: mcpServersPage },
  async handle({ context, who, query }) {
    return jsonReply(await listMcpServerPage(context, who, query));
  },
});

export const getMcpServer = forUser({
  summary: 'Get an MCP server',
  description: 'Its status does not follow a process; health says what runs on the caller’s machines.',
  params: mcpServerParams,
  replies: { 200: mcpServerRecord },
  async handle({ context, who, params }) {
    return jsonReply(await findMcpServer(context, who, params.id));
  },
});

export const putMcpServer = forUser({
  summary: 'Replace an MCP server',
  description:
    'Replaces every field; omitted ones get their defaults, except registry_id, which stays. The owner cannot change. With the revision that you read, or in quotes as If-Match, the server is replaced only if nobody has changed it since (409 conflict).',
  params: mcpServerParams,
  headers: mcpServerHeaders,
  body: mcpServerReplacement,
  replies: { 200: mcpServerRecord },
  async handle({ context, who, params, headers, body: { revision, ...input } }) {
    const expected = expectedRevision(headers['If-Match'], revision);
    if (!expected.ok) return expected;
    const replaced = await replaceMcpServer(context, who, params.id, input, expected.value);
    return changeReply(replaced, (server) => ({ status: 200, json: server }));
  },
});

export const deleteMcpServer = forUser({
  summary: 'Remove an MCP server and its credentials',
  params: mcpServerParams,
  replies: { 204: 'Removed' },
  async handle({ context, who, params }) {
    return changeReply(await removeMcpServer(context, who, params.id), () => ({ status: 204 }));
  },
});

export const getMcpServerDeletion = forUser({
  summary: 'Show what deleting an MCP server would do',
  description:
    'Names what would stop working, and what would apply instead. Changes nothing. Needs the scope of the deletion itself.',
  params: mcpServerParams,
  replies: { 200: removalPreview },
  async handle({ context, who, params }) {
    return jsonReply(await previewServerRemoval(context, who, params.id));
  },
});

export const postMcpCredential = forUser({
  summary: 'Store a credential of an MCP server',
  description:
    'Replaces an earlier one. The env entry of a local server becomes a reference to it. No reply ever contains a value.',
  params: mcpServerParams,
  body: mcpCredentialInput,
  replies: { 200: mcpCredentialReply },
  async handle({ context, who, params, body }) {
    const credential = { name: body.env_var_name, value: new Secret(body.secret_value) };
    const stored = await storeMcpCredential(context, who, params.id, credential);
    return changeReply(stored, (reply) => ({ status: 200, json: reply }));
  },
});

export const deleteMcpCredential = forUser({
  summary: 'Delete a stored credential of an MCP server',
  description: 'The configuration still refers to it, and the server does not start without it.',
  params: mcpCredentialParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    return changeReply(await removeMcpCredential(context, who, params.id, params.name), () => ({ status: 204 }));
  },
});

export const getMcpRevisions = forUser({
  summary: 'List the configurations of an MCP server',
  description: 'The newest 20; the first is in force. They contain no credentials.',
  params: mcpServerParams,
  replies: { 200: mcpRevisionsReply },
  async handle({ context, who, params }) {
    return jsonReply(await listMcpServerRevisions(context, who, params.id));
  },
});

export const postMcpRollback = forUser({
  summary: 'Restore an earlier configuration of an MCP server',
  description: 'Creates a new revision. Credentials do not change.',
  params: mcpServerParams,
  body: mcpRollbackInput,
  replies: { 200: mcpServerRecord },
  async handle({ context, who, params, body }) {
    const replaced = await rollbackMcpServer(context, who, params.id, body.revision);
    return changeReply(replaced, (server) => ({ status: 200, json: server }));
  },
});

export const getMcpTools = forUser({
  summary: 'List the tools and prompts of an MCP server, as its machines have seen them',
  description:
    'What waits comes first: it is new or has changed, and is neither listed nor callable until somebody accepts it. Marks say what its text has that a person should know of.',
  params: mcpServerParams,
  replies: { 200: mcpToolsReply },
  async handle({ context, who, params }) {
    return jsonReply(await listTools(context, who, params.id));
  },
});

export const postMcpToolsAccept = forUser({
  summary: 'Accept tools and prompts of an MCP server that wait',
  description: 'By their hashes. Whoever may change the server may accept them.',
  params: mcpServerParams,
  body: mcpToolsAcceptInput,
  replies: { 200: mcpToolsReply },
  async handle({ context, who, params, body }) {
    const accepted = await acceptTools(context, who, params.id, body.hashes);
    return changeReply(accepted, (tools) => ({ status: 200, json: tools }));
  },
});

export const postMcpAuthorization = forUser({
  summary: 'Authorise a remote MCP server',
  description:
    "Discovers the server's authorization server (RFC 9728, RFC 8414), registers a client if that is supported (RFC 7591), and returns a link to open in a browser.",
  params: mcpServerParams,
  body: mcpAuthorizationInput,
  replies: { 200: mcpAuthorizeReply },
  async handle({ context, who, params, body, request }) {
    const origin = redirectOrigin(context, request.url);
    if (!origin.ok) return origin;
    return jsonReply(await beginMcpAuthorisation(context, who, params.id, { input: body, ...origin.value }));
  },
});

export const deleteMcpAuthorization = forUser({
  summary: 'Delete the authorisation of a remote MCP server',
  params: mcpServerParams,
  replies: { 204: 'Forgotten' },
  async handle({ context, who, params }) {
    return changeReply(await removeMcpAuthorisation(context, who, params.id), () => ({ status: 204 }));
  },
});
