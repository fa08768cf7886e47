import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { parseJsonBytes } from '../../../shared/model/json.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import type { ServiceContext } from '../../kernel/service_context.ts';
import { type Directory, findDirectory } from '../../scim/scim_tokens.ts';
import type { ScimResource } from '../../scim/scim_views.ts';
import type { AppContext } from '../http/app_env.ts';
import { errorReply } from '../http/error_reply.ts';
import { refuseExcess } from '../http/limit_calls.ts';
import { SCIM_MEDIA_TYPE } from '../http/scim_error.ts';

/** A request of a directory, and where it acts. */
export interface ScimCall {
  readonly c: AppContext;
  readonly context: ServiceContext;
  readonly directory: Directory;
  readonly id: string;
  /** Undefined without a body. */
  readonly body: unknown;
  /** The entity tag that a change is for; null if there is none. */
  readonly ifMatch: string | null;
}

type Answer = (call: ScimCall) => Promise<Result<Response, ApiError>> | Result<Response, ApiError>;

/** A handler for requests of directories: only a SCIM token authenticates, never a cookie or a token of a user. */
export function forDirectory(answer: Answer) {
  return async (c: AppContext): Promise<Response> => {
    const context = c.get('context');
    const token = /^Bearer +([\w-]+)$/i.exec(c.req.header('authorization') ?? '')?.[1] ?? '';
    const directory = await findDirectory(context, token);
    if (directory === null)
      return errorReply(c, apiError('unauthenticated', 'send "Authorization: Bearer" with a SCIM token'));
    const refused = refuseExcess(c, 'directory', directory.enterpriseId);
    if (refused !== null) return refused;
    const body = await readBody(c);
    if (!body.ok) return errorReply(c, body.error);
    const ifMatch = c.req.header('if-match') ?? null;
    const id = c.req.param('id') ?? '';
    const answered = await answer({ c, context, directory, id, body: body.value, ifMatch });
    return answered.ok ? answered.value : errorReply(c, answered.error);
  };
}

const MEDIA_TYPES = /^application\/(?:scim\+)?json\b/i;

async function readBody(c: AppContext): Promise<Result<unknown, ApiError>> {
  if (['GET', 'HEAD', 'DELETE'].includes(c.req.method)) return ok(undefined);
  if (!MEDIA_TYPES.test(c.req.header('content-type') ?? '')) {
    return err(apiError('unsupported_media_type', `send the body as ${SCIM_MEDIA_TYPE}`));
  }
  const body = parseJsonBytes(new Uint8Array(await c.req.arrayBuffer()));
  return body === undefined
    ? err(apiError('invalid_json', 'the body is not JSON', { scim_type: 'invalidSyntax' }))
    : ok(body);
}

/** A reply of SCIM (RFC 7644 section 8.1). */
export function scimReply(c: AppContext, body: unknown, status: ContentfulStatusCode = 200): Response {
  return c.body(JSON.stringify(body), status, { 'content-type': SCIM_MEDIA_TYPE });
}

/** One resource with its entity tag; 304 if the caller has this version. */
export function resourceReply(c: AppContext, resource: ScimResource, status: 200 | 201 = 200): Response {
  const headers = { etag: resource.version, location: resource.location };
  for (const [name, value] of Object.entries(headers)) c.header(name, value);
  const known = c.req.header('if-none-match');
  if (c.req.method === 'GET' && known !== undefined && known === resource.version) return c.body(null, 304);
  return scimReply(c, resource.body, status);
}
