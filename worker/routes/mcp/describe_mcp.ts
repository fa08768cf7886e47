import type { OpenAPIHono, RouteConfig } from '@hono/zod-openapi';
import { z } from 'zod';
import { errorBody } from '../../../shared/wire/errors.ts';
import {
  MCP_CLIENT_DOCUMENT_PATH,
  MCP_PATH,
  mcpClientRegistered,
  mcpAccessToken,
  mcpClientRegistration,
  mcpTokens,
  oauthErrorBody,
} from '../../../shared/wire/mcp/mcp_clients.ts';
import type { AppEnv } from '../http/app_env.ts';
import { AUTHORIZE_PATH } from './oauth_endpoints.ts';

type Described = Pick<RouteConfig, 'method' | 'path' | 'summary' | 'description' | 'request' | 'responses'>;

const tokenReply = z.union([mcpTokens, mcpAccessToken]);
const json = (schema: typeof tokenReply | typeof mcpClientRegistered | typeof oauthErrorBody) => ({
  content: { 'application/json': { schema } },
});
const OAUTH_ERROR = { description: 'An error of OAuth', ...json(oauthErrorBody) };

const OPERATIONS: readonly Described[] = [
  {
    method: 'post',
    path: MCP_PATH,
    summary: 'Your MCP server',
    description:
      'Streamable HTTP without sessions, for MCP clients: the tools of your remote MCP servers. Only on a hosted control plane. The token is one for the resource /mcp; without it, the WWW-Authenticate header of the 401 names the metadata.',
    responses: { 200: { description: 'A message of the Model Context Protocol' }, 202: { description: 'Accepted' } },
  },
  {
    method: 'get',
    path: `/.well-known/oauth-protected-resource${MCP_PATH}`,
    summary: 'Metadata of your MCP server (RFC 9728)',
    responses: { 200: { description: 'The resource and its authorization server' } },
  },
  {
    method: 'get',
    path: '/.well-known/oauth-authorization-server',
    summary: 'Metadata of the authorization server of MCP clients (RFC 8414)',
    responses: { 200: { description: 'The endpoints below' } },
  },
  {
    method: 'get',
    path: MCP_CLIENT_DOCUMENT_PATH,
    summary: 'Metadata of the control plane as an OAuth client',
    description: 'For authorization servers of remote MCP servers, which know a client by the URL of such a document.',
    responses: { 200: { description: 'A client metadata document' } },
  },
  {
    method: 'get',
    path: AUTHORIZE_PATH,
    summary: 'Ask a signed-in person to connect an MCP client',
    description:
      'The authorization code grant with PKCE (S256). Redirects back with a code, or with an error and the name of this server.',
    responses: { 200: { description: 'A page for the person at the browser' }, 303: { description: 'A redirect' } },
  },
  {
    method: 'post',
    path: '/oauth/token',
    summary: 'Get or renew the tokens of an MCP client',
    description:
      'A form with grant_type, client_id and the fields of the grant. Using a code or a refresh token a second time ends the connection. With urn:ietf:params:oauth:grant-type:jwt-bearer, assertion is an identity assertion (ID-JAG) of the OpenID provider of the person’s enterprise, which works once and gives no refresh token; the enterprise has to allow its provider to connect the client.',
    responses: { 200: { description: 'Success', ...json(tokenReply) }, 400: OAUTH_ERROR, 429: OAUTH_ERROR },
  },
  {
    method: 'post',
    path: '/oauth/register',
    summary: 'Register an MCP client (RFC 7591)',
    description:
      'It gets an id and no secret, and is deleted after a day if nobody connects it. A client may use the URL of its metadata document as its id instead.',
    request: { body: { required: true, content: { 'application/json': { schema: mcpClientRegistration } } } },
    responses: { 201: { description: 'Success', ...json(mcpClientRegistered) }, 400: OAUTH_ERROR, 429: OAUTH_ERROR },
  },
  {
    method: 'post',
    path: '/oauth/revoke',
    summary: 'Disconnect an MCP client by one of its tokens (RFC 7009)',
    description: 'A form with token and client_id.',
    responses: { 200: { description: 'Disconnected, or was not connected' }, 400: OAUTH_ERROR },
  },
];

/** Adds the MCP server and its authorization server to the OpenAPI document. */
export function describeMcp(app: OpenAPIHono<AppEnv>): void {
  const fallback = { description: 'A refusal', content: { 'application/json': { schema: errorBody } } };
  for (const { responses, ...operation } of OPERATIONS) {
    const route = { ...operation, tags: ['mcp'], security: [], responses: { ...responses, default: fallback } };
    app.openAPIRegistry.registerPath(route);
  }
}
