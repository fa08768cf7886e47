import type { OpenAPIHono, RouteConfig } from '@hono/zod-openapi';
import { z } from 'zod';
import type { AppEnv } from '../http/app_env.ts';
import { SCIM_MEDIA_TYPE } from '../http/scim_error.ts';
import { SCIM_ROUTES } from './scim_routes.ts';

const resource = z.looseObject({ schemas: z.array(z.string()) }).meta({ id: 'ScimResource' });
const list = z
  .object({
    schemas: z.array(z.string()),
    totalResults: z.number().int(),
    startIndex: z.number().int(),
    itemsPerPage: z.number().int(),
    Resources: z.array(resource),
  })
  .meta({ id: 'ScimList' });
const patch = z
  .object({
    schemas: z.array(z.string()),
    Operations: z.array(z.object({ op: z.string(), path: z.string().optional(), value: z.unknown() })),
  })
  .meta({ id: 'ScimPatch' });
const error = z
  .object({ schemas: z.array(z.string()), status: z.string(), scimType: z.string().optional(), detail: z.string() })
  .meta({ id: 'ScimError' });

const listQuery = z.object({
  filter: z.string().optional(),
  startIndex: z.string().optional(),
  count: z.string().optional(),
  attributes: z.string().optional(),
  excludedAttributes: z.string().optional(),
});
const resourceParams = z.object({ id: z.string() });

const VERBS = { get: 'Get', post: 'Create', put: 'Replace', patch: 'Change', delete: 'Delete' } as const;

/** Adds the SCIM endpoints to the OpenAPI document. */
export function describeScim(app: OpenAPIHono<AppEnv>): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'scim', {
    type: 'http',
    scheme: 'bearer',
    description: 'A SCIM token of the enterprise, from POST /v1/scim-tokens.',
  });
  for (const [method, path] of SCIM_ROUTES) app.openAPIRegistry.registerPath(routeOf(method, path));
}

function routeOf(method: keyof typeof VERBS, path: string): RouteConfig {
  const [, , , name = '', item] = path.split('/');
  const isList = method === 'get' && item === undefined && name !== 'ServiceProviderConfig';
  const success = isList ? list : resource;
  const status = method === 'post' ? 201 : method === 'delete' ? 204 : 200;
  const ok = { description: 'Success', ...(status !== 204 && { content: { [SCIM_MEDIA_TYPE]: { schema: success } } }) };
  return {
    method,
    path,
    summary: `${isList ? 'List' : VERBS[method]} ${name} (SCIM 2.0)`,
    tags: ['scim'],
    security: [{ scim: [] }],
    request: {
      ...(item !== undefined && { params: resourceParams }),
      ...(isList && { query: listQuery }),
      ...(['post', 'put', 'patch'].includes(method) && {
        body: { required: true, content: { [SCIM_MEDIA_TYPE]: { schema: method === 'patch' ? patch : resource } } },
      }),
    },
    responses: {
      [status]: ok,
      default: { description: 'An error of SCIM', content: { [SCIM_MEDIA_TYPE]: { schema: error } } },
    },
  };
}
