import { MCP_CLIENT_DOCUMENT_PATH, MCP_PATH } from '../../../shared/wire/mcp/mcp_clients.ts';
import type { AppContext } from '../http/app_env.ts';
import { getClientConsent, submitClientConsent } from './client_consent.ts';
import { postMcp } from './mcp_endpoint.ts';
import {
  AUTHORIZE_PATH,
  getClientDocument,
  getResourceMetadata,
  getServerMetadata,
  postRegistration,
  postRevocation,
  postToken,
} from './oauth_endpoints.ts';
import { answerPreflight, whereServed } from './public_server.ts';

type McpRoute = readonly [
  method: 'get' | 'post' | 'options',
  path: string,
  answer: (c: AppContext) => Response | Promise<Response>,
];

const RESOURCE_METADATA = '/.well-known/oauth-protected-resource';
const SERVER_METADATA = '/.well-known/oauth-authorization-server';

/** What programs and pages of other sites call. */
export const CROSS_ORIGIN_PATHS = [
  MCP_PATH,
  RESOURCE_METADATA,
  RESOURCE_METADATA + MCP_PATH,
  SERVER_METADATA,
  '/oauth/token',
  '/oauth/register',
  '/oauth/revoke',
];

/** The MCP server of a hosted control plane, and the authorization server of its clients (decision 0079). */
export const MCP_ROUTES: readonly McpRoute[] = [
  ['post', MCP_PATH, postMcp],
  ['get', RESOURCE_METADATA, getResourceMetadata],
  ['get', RESOURCE_METADATA + MCP_PATH, getResourceMetadata],
  ['get', SERVER_METADATA, getServerMetadata],
  ['get', MCP_CLIENT_DOCUMENT_PATH, getClientDocument],
  ['get', AUTHORIZE_PATH, getClientConsent],
  ['post', AUTHORIZE_PATH, submitClientConsent],
  ['post', '/oauth/token', postToken],
  ['post', '/oauth/register', postRegistration],
  ['post', '/oauth/revoke', postRevocation],
  ...CROSS_ORIGIN_PATHS.map((path): McpRoute => ['options', path, whereServed(answerPreflight)]),
];
