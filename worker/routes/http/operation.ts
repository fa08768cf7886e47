import { createRoute, type OpenAPIHono, type RouteConfig } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';
import type { Result } from '../../../shared/model/result.ts';
import { type ApiError, errorBody } from '../../../shared/wire/errors.ts';
import type { Caller } from '../../kernel/caller.ts';
import type { ProgramContext } from '../../installation/program_context.ts';
import type { SidecarCaller } from '../../services/sidecars/sidecar_calls.ts';
import type { AppContext, AppEnv } from './app_env.ts';
import { scopeOf } from '../../tokens/scopes.ts';
import { authenticateSidecar, authenticateUser, authenticateVisitor } from './authenticate.ts';
import { bodyNotUtf8, errorReply } from './error_reply.ts';
import { authenticateLate } from './late_body.ts';
import { limitCalls } from './limit_calls.ts';
import { onFittingDatabase } from './replica_reads.ts';

/** The input of a handler: the validated parts of the request, and the caller. */
interface Call<Who, Query, Params, Body, HeaderFields> {
  readonly context: ProgramContext;
  readonly who: Who;
  readonly query: Query;
  readonly params: Params;
  readonly body: Body;
  readonly headers: HeaderFields;
  readonly request: Request;
  /** The caller's address; null if the runtime does not provide it. */
  readonly clientAddress: string | null;
}

/** A JSON reply, one without a body, or a response of another kind. */
export type Reply =
  | {
      readonly status: ContentfulStatusCode;
      readonly json: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | { readonly status: 204; readonly headers?: Readonly<Record<string, string>> }
  | Response;

interface Described<Query, Params, Body, HeaderFields> {
  readonly summary: string;
  readonly description?: string;
  readonly query?: z.ZodObject & z.ZodType<Query>;
  readonly params?: z.ZodObject & z.ZodType<Params>;
  readonly body?: z.ZodType<Body>;
  readonly headers?: z.ZodObject & z.ZodType<HeaderFields>;
  /** The body is optional; without one the handler gets an empty object. */
  readonly isBodyOptional?: true;
  /** Successful replies by status; null for one without a JSON body. */
  readonly replies: Readonly<Record<number, z.ZodType | string>>;
}

type Handled<Who, Query, Params, Body, HeaderFields> = Described<Query, Params, Body, HeaderFields> & {
  readonly handle: (call: Call<Who, Query, Params, Body, HeaderFields>) => Promise<Result<Reply, ApiError>>;
};

/** An operation of the API, as the route table lists it. */
export interface Operation {
  readonly described: Described<unknown, unknown, unknown, unknown>;
  readonly access: 'anyone' | 'visitor' | 'user' | 'sidecar';
  readonly answer: (c: AppContext, parts: Parts) => Promise<Result<Reply, ApiError>>;
}
interface Parts {
  readonly query: never;
  readonly params: never;
  readonly body: never;
  readonly headers: never;
}

/** A public operation. */
export function forAnyone<Q, P, B, H>(operation: Handled<null, Q, P, B, H>): Operation {
  return define('anyone', operation, () => null);
}

/** A public operation whose reply has more for signed-in users. */
export function forVisitor<Q, P, B, H>(operation: Handled<Caller | null, Q, P, B, H>): Operation {
  return define('visitor', operation, (c) => c.get('visitor'));
}

/** An operation of a signed-in user. */
export function forUser<Q, P, B, H>(operation: Handled<Caller, Q, P, B, H>): Operation {
  return define('user', operation, (c) => c.get('caller'));
}

/** An operation of an enrolled sidecar. */
export function forSidecar<Q, P, B, H>(operation: Handled<SidecarCaller, Q, P, B, H>): Operation {
  return define('sidecar', operation, (c) => c.get('sidecar'));
}

function define<Who, Q, P, B, H>(
  access: Operation['access'],
  operation: Handled<Who, Q, P, B, H>,
  who: (c: AppContext) => Who,
): Operation {
  const { handle, ...described } = operation;
  const answer = (c: AppContext, parts: Parts) =>
    handle({
      context: c.get('context'),
      who: who(c),
      request: c.req.raw,
      clientAddress: c.get('clientAddress'),
      ...parts,
    });
  return { described, access, answer };
}

export type Method = 'get' | 'post' | 'put' | 'delete';

/** The security schemes of the OpenAPI document. */
export function describeAccess(app: OpenAPIHono<AppEnv>): void {
  const bearer = { type: 'http', scheme: 'bearer' } as const;
  const register = app.openAPIRegistry.registerComponent.bind(app.openAPIRegistry);
  register('securitySchemes', 'user', {
    ...bearer,
    description:
      'An access token, or a personal token with the scope that the operation names; a signed-in browser sends its cookie instead.',
  });
  register('securitySchemes', 'sidecar', {
    ...bearer,
    bearerFormat: 'JWT',
    description: 'A token that signs this call.',
  });
}

function authentication({ access, described }: Operation, method: Method, path: string): MiddlewareHandler<AppEnv>[] {
  if (access === 'anyone') return [];
  if (access === 'sidecar') return [authenticateSidecar, limitCalls('sidecars')];
  const scope = scopeOf(method, path);
  if (access === 'visitor') return [authenticateVisitor(scope)];
  const authenticate = authenticateUser(scope);
  const late = described.body === undefined ? [] : [authenticateLate(authenticate)];
  return [authenticate, limitCalls('people'), ...late];
}

/** Invalid UTF-8 would be stored as other text than was sent. */
const refuseOtherEncodings: MiddlewareHandler<AppEnv> = async (c, next) => {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(await c.req.arrayBuffer());
  } catch (error) {
    if (error instanceof TypeError) return errorReply(c, bodyNotUtf8());
    throw error;
  }
  return next();
};

/** A client without a body may still declare JSON. */
const takeNoBodyForEmpty: MiddlewareHandler<AppEnv> = async (c, next) => {
  if ((await c.req.arrayBuffer()).byteLength === 0) Object.assign(c.req.bodyCache, { text: Promise.resolve('{}') });
  return next();
};

/** The output of a route's validators; its types are only known to its own schemas. */
type ValidatedContext = Context<AppEnv, string, { out: { query: never; param: never; json: never; header: never } }>;

/** Adds an operation to the app: authentication runs first, then validation. */
export function mount(app: OpenAPIHono<AppEnv>, method: Method, path: string, operation: Operation): void {
  const route = routeConfig(method, path.replace('+}', '}'), operation);
  app.openAPIRegistry.registerPath(route);
  const { body, isBodyOptional } = operation.described;
  const ofBody = body === undefined ? [] : [refuseOtherEncodings];
  const ofNoBody = isBodyOptional === true ? [takeNoBodyForEmpty] : [];
  const middleware = [...authentication(operation, method, path), ...ofBody, ...ofNoBody];
  const routed = { ...route, path: path.replace('+}', '}{[^]+}'), hide: true, middleware };
  app.openapi(createRoute(routed), async (c: ValidatedContext) => {
    const parts = {
      query: c.req.valid('query'),
      params: c.req.valid('param'),
      body: c.req.valid('json'),
      headers: c.req.valid('header'),
    };
    const result = await onFittingDatabase(c, [method, path], () => operation.answer(c, parts));
    return result.ok ? toResponse(c, result.value) : errorReply(c, result.error);
  });
}

function toResponse(c: AppContext, reply: Reply): Response {
  if (reply instanceof Response) return reply;
  for (const [name, value] of Object.entries(reply.headers ?? {})) c.header(name, value);
  return 'json' in reply ? c.json(reply.json, reply.status) : c.body(null, reply.status);
}

function routeConfig(method: Method, path: string, operation: Operation): RouteConfig {
  const { summary, description, query, params, body, headers, isBodyOptional = false, replies } = operation.described;
  const successes = Object.entries(replies).map(([status, reply]) => [status, replyConfig(reply)]);
  return {
    method,
    path,
    summary,
    ...(description !== undefined && { description }),
    tags: [tagOf(path)],
    security: securityOf(operation.access, method, path),
    request: {
      ...(query && { query }),
      ...(params && { params }),
      ...(headers && { headers }),
      ...(body && { body: { required: !isBodyOptional, content: { 'application/json': { schema: body } } } }),
    },
    responses: { ...Object.fromEntries(successes), default: ERROR_REPLY },
  };
}

/** All sign-in paths have one tag in the document. */
function tagOf(path: string): string {
  const [, first, second = 'service'] = path.split('/');
  return first === 'v1' ? second : 'auth';
}

/** In OpenAPI's form: an empty alternative means that no sign-in is needed. */
function securityOf(access: Operation['access'], method: Method, path: string): Record<string, string[]>[] {
  if (access === 'anyone') return [];
  if (access === 'sidecar') return [{ sidecar: [] }];
  // The scope for a personal token; absent if personal tokens cannot call the operation.
  const scope = scopeOf(method, path);
  const user = { user: scope === null ? [] : [scope] };
  return access === 'visitor' ? [{}, user] : [user];
}

function replyConfig(reply: z.ZodType | string) {
  if (typeof reply === 'string') return { description: reply };
  return { description: 'Success', content: { 'application/json': { schema: reply } } };
}

const ERROR_REPLY = { description: 'A refusal', content: { 'application/json': { schema: errorBody } } };
