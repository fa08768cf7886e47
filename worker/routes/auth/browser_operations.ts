import type { OpenAPIHono, RouteConfig } from '@hono/zod-openapi';
import {
  callbackQuery,
  connectorAuthorisationParams,
  linkParams,
  loginQuery,
  providerParams,
  ssoQuery,
} from '../../../shared/wire/auth.ts';
import { CALLBACK_PATH } from '../../services/oauth/oauth_authorisation.ts';
import type { AppEnv } from '../http/app_env.ts';
import type { Method } from '../http/operation.ts';

/** A step of signing in that a browser takes: answered by a redirect or a page, as the API's description says it. */
export interface BrowserOperation {
  readonly summary: string;
  readonly description: string;
  readonly params?: typeof providerParams | typeof linkParams | typeof connectorAuthorisationParams;
  readonly query?: typeof loginQuery | typeof callbackQuery | typeof ssoQuery;
  /** `anyone`, or a browser that is signed in. */
  readonly access: 'anyone' | 'browser';
  /** What success looks like, by status. */
  readonly replies: Readonly<Record<number, string>>;
}

const ON_ITS_WAY = 'The browser is sent on';
const PAGE = 'A page for the person in front of the browser';

/** The paths of the page table that are no pages of the console but steps of signing in. */
export const BROWSER_OPERATIONS: readonly (readonly [Method, string, BrowserOperation])[] = [
  [
    'get',
    '/auth/{provider}/login',
    {
      summary: 'Start signing in with a provider',
      description:
        'Sends the browser to the provider and keeps what it has to bring back in httpOnly cookies. The callback URL is derived from Host, X-Forwarded-Host and X-Forwarded-Proto. A browser that comes from another site is asked first. An enterprise’s own provider is one like the others, under the name that GET /auth/sso leads to.',
      params: providerParams,
      query: loginQuery,
      access: 'anyone',
      replies: { 200: PAGE, 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    '/auth/{provider}/callback',
    {
      summary: 'Come back from a provider',
      description:
        'Where the provider sends the browser back to: its answer is exchanged once, with the cookies of the browser that began, and the browser is signed in. At a loopback name of a local control plane a state that is under way is handed over to the console’s own name.',
      params: providerParams,
      query: callbackQuery,
      access: 'anyone',
      replies: { 200: PAGE, 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    '/auth/sso',
    {
      summary: 'Find the provider of an enterprise',
      description: 'By the domain of an address, which the enterprise has proved to be its own.',
      query: ssoQuery,
      access: 'anyone',
      replies: { 200: PAGE },
    },
  ],
  [
    'post',
    '/auth/{provider}/link',
    {
      summary: 'Add a way to sign in to an account',
      description: 'From a page of this control plane alone: a form of another site is refused.',
      params: providerParams,
      access: 'browser',
      replies: { 200: PAGE },
    },
  ],
  [
    'post',
    '/auth/logout',
    {
      summary: 'Sign a browser out',
      description: 'From a page of this control plane alone. A browser is sent to the sign-in page.',
      access: 'anyone',
      replies: { 204: 'Signed out', 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    '/auth/link/{code}',
    {
      summary: 'Sign a browser in with a one-time link',
      description:
        'Of POST /v1/sign-in-links, and printed by svc up; good once, and on your own machine at the console’s own name alone.',
      params: linkParams,
      access: 'anyone',
      replies: { 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    '/auth/connectors/{id}/authorize',
    {
      summary: 'Authorise a connector’s oauth2 credential in a browser',
      description: 'Sends the browser to the connector’s authorisation server.',
      params: connectorAuthorisationParams,
      access: 'browser',
      replies: { 303: ON_ITS_WAY },
    },
  ],
  [
    'get',
    CALLBACK_PATH,
    {
      summary: 'Come back from authorising a connector or an MCP server',
      description:
        'Where the authorisation server sends the browser back to. At a loopback name of a local control plane what began in the console is handed over to the console’s own name.',
      query: callbackQuery,
      access: 'anyone',
      replies: { 200: PAGE, 303: ON_ITS_WAY },
    },
  ],
];

/** Puts the steps of signing in that browsers take into the API's description. */
export function describeBrowserOperations(app: OpenAPIHono<AppEnv>): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'browser', {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-session',
    description: 'The cookie of a signed-in browser; svc_session on this machine.',
  });
  for (const [method, path, operation] of BROWSER_OPERATIONS) {
    app.openAPIRegistry.registerPath(routeOf(method, path, operation));
  }
}

function routeOf(method: Method, path: string, operation: BrowserOperation): RouteConfig {
  const { summary, description, params, query, access, replies } = operation;
  return {
    method,
    path,
    summary,
    description,
    tags: ['auth'],
    security: access === 'browser' ? [{ browser: [] }] : [],
    request: { ...(params && { params }), ...(query && { query }) },
    responses: {
      ...Object.fromEntries(Object.entries(replies).map(([status, text]) => [status, { description: text }])),
      default: {
        description: 'A page that says what is wrong',
        content: { 'text/html': { schema: { type: 'string' } } },
      },
    },
  };
}
