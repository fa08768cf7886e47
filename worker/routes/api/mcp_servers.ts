import { Secret } from '../../../shared/model/secret.ts';
import { mcpAuthorizationInput, mcpAuthorizeReply } from '../../../shared/wire/mcp_authorization.ts';
import {
  mcpCredentialInput,
  mcpCredentialParams,
  mcpCredentialReply,
  mcpRevisionsReply,
  mcpRollbackInput,
  mcpServerInput,
  mcpServerParams,
  mcpServerRecord,
  mcpServersPage,
  mcpServersQuery,
} from '../../../shared/wire/mcp_servers.ts';
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
import { redirectOrigin } from './connector_authorisation.ts';
import { forUser } from '../http/operation.ts';
import { changed, json } from '../http/replies.ts';

export const postMcpServer = forUser({
  summary: 'Register an MCP server',
  description:
    'A reference to a credential is written vault://mcp-servers/{id}/NAME, with "{id}" as it is; the server’s own id takes its place. A command that would run whatever it is given is refused.',
  body: mcpServerInput,
  replies: { 201: mcpServerRecord },
  async handle({ context, who, body }) {
    return changed(await createMcpServer(context, who, body), (server) => ({ status: 201, json: server }));
  },
});

export const getMcpServers = forUser({
  summary: 'List MCP servers',
  query: mcpServersQuery,
  replies: { 200: mcpServersPage },
  async handle({ context, who, query }) {
    return json(await listMcpServerPage(context, who, query));
  },
});

export const getMcpServer = forUser({
  summary: 'Get an MCP server',
  description: 'Its status is not driven by a process; what runs on the caller’s machines is in health.',
  params: mcpServerParams,
  replies: { 200: mcpServerRecord },
  async handle({ context, who, params }) {
    return json(await findMcpServer(context, who, params.id));
  },
});

export const putMcpServer = forUser({
  summary: 'Replace an MCP server',
  description:
    'Every field is replaced; one left out takes its default, but registry_id stays. The owner cannot change.',
  params: mcpServerParams,
  body: mcpServerInput,
  replies: { 200: mcpServerRecord },
  async handle({ context, who, params, body }) {
    const replaced = await replaceMcpServer(context, who, params.id, body);
    return changed(replaced, (server) => ({ status: 200, json: server }));
  },
});

export const deleteMcpServer = forUser({
  summary: 'Remove an MCP server and its credentials',
  params: mcpServerParams,
  replies: { 204: 'Removed' },
  async handle({ context, who, params }) {
    return changed(await removeMcpServer(context, who, params.id), () => ({ status: 204 }));
  },
});

export const postMcpCredential = forUser({
  summary: 'Store a credential of an MCP server',
  description:
    'In place of the one before. The env entry of a local server becomes the reference to it. No reply ever holds a value.',
  params: mcpServerParams,
  body: mcpCredentialInput,
  replies: { 200: mcpCredentialReply },
  async handle({ context, who, params, body }) {
    const credential = { name: body.env_var_name, value: new Secret(body.secret_value) };
    const stored = await storeMcpCredential(context, who, params.id, credential);
    return changed(stored, (reply) => ({ status: 200, json: reply }));
  },
});

export const deleteMcpCredential = forUser({
  summary: 'Delete a stored credential of an MCP server',
  description: 'The configuration goes on referring to it, and the server is not started without it.',
  params: mcpCredentialParams,
  replies: { 204: 'Deleted' },
  async handle({ context, who, params }) {
    return changed(await removeMcpCredential(context, who, params.id, params.name), () => ({ status: 204 }));
  },
});

export const getMcpRevisions = forUser({
  summary: 'List the configurations that an MCP server had',
  description: 'The newest 20; the first one is in force. Credentials are no part of them.',
  params: mcpServerParams,
  replies: { 200: mcpRevisionsReply },
  async handle({ context, who, params }) {
    return json(await listMcpServerRevisions(context, who, params.id));
  },
});

export const postMcpRollback = forUser({
  summary: 'Give an MCP server an earlier configuration',
  description: 'It becomes a new revision. Credentials stay as they are.',
  params: mcpServerParams,
  body: mcpRollbackInput,
  replies: { 200: mcpServerRecord },
  async handle({ context, who, params, body }) {
    const replaced = await rollbackMcpServer(context, who, params.id, body.revision);
    return changed(replaced, (server) => ({ status: 200, json: server }));
  },
});

export const postMcpAuthorization = forUser({
  summary: 'Authorise a remote MCP server',
  description:
    'Finds where the server is signed in to (RFC 9728, RFC 8414), registers a client where that is offered (RFC 7591), and answers with a link to open in a browser.',
  params: mcpServerParams,
  body: mcpAuthorizationInput,
  replies: { 200: mcpAuthorizeReply },
  async handle({ context, who, params, body, request }) {
    const origin = redirectOrigin(context, request.url);
    if (!origin.ok) return origin;
    return json(await beginMcpAuthorisation(context, who, params.id, { input: body, ...origin.value }));
  },
});

export const deleteMcpAuthorization = forUser({
  summary: 'Forget the authorisation of a remote MCP server',
  params: mcpServerParams,
  replies: { 204: 'Forgotten' },
  async handle({ context, who, params }) {
    return changed(await removeMcpAuthorisation(context, who, params.id), () => ({ status: 204 }));
  },
});
