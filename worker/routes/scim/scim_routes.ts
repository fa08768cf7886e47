import { parseFilter } from '../../../shared/scim/filter.ts';
import {
  DEFAULT_RESULTS,
  listResponse,
  localName,
  MAX_RESULTS,
  resourceTypes,
  schemaResources,
  serviceProviderConfig,
} from '../../../shared/scim/schemas.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import { SCIM_PATH } from '../../../shared/wire/scim_tokens.ts';
import {
  createGroup,
  getGroup,
  listGroups,
  patchGroup,
  removeGroup,
  replaceGroup,
} from '../../scim/directory_groups.ts';
import {
  createUser,
  deleteUser,
  getUser,
  type ListQuery,
  listUsers,
  patchUser,
  replaceUser,
  type ScimList,
} from '../../scim/directory_users.ts';
import { invalidValue, unknownResource, unreadable } from '../../scim/scim_refusals.ts';
import { baseUrl, type ScimResource, type Wanted } from '../../scim/scim_views.ts';
import type { AppContext } from '../http/app_env.ts';
import { forDirectory, resourceReply, type ScimCall, scimReply } from './scim_endpoint.ts';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
export type ScimRoute = readonly [method: Method, path: string, answer: (c: AppContext) => Promise<Response>];

/** A kind of resource that directories manage. */
interface Resources {
  readonly list: (...of: Parameters<typeof listUsers>) => Promise<ScimList>;
  readonly get: typeof getUser;
  readonly create: typeof createUser;
  readonly replace: typeof replaceUser;
  readonly patch: typeof patchUser;
  readonly remove: typeof deleteUser;
}

function routesOf(path: string, { list, get, create, replace, patch, remove }: Resources): ScimRoute[] {
  const one = `${path}/{id}`;
  return [
    ['get', path, forDirectory((call) => answerList(call, list))],
    [
      'post',
      path,
      forDirectory(async (call) => reply(call, await create(call.context, call.directory, call.body), 201)),
    ],
    [
      'get',
      one,
      forDirectory(async (call) => reply(call, await get(call.context, call.directory, call.id, wantedOf(call.c)))),
    ],
    ['put', one, forDirectory(async (call) => reply(call, await replace(call.context, call.directory, call.id, call)))],
    ['patch', one, forDirectory(async (call) => reply(call, await patch(call.context, call.directory, call.id, call)))],
    [
      'delete',
      one,
      forDirectory(async ({ c, context, directory, id, ifMatch }) => {
        const removed = await remove(context, directory, id, ifMatch);
        return removed.ok ? ok(c.body(null, 204)) : removed;
      }),
    ],
  ];
}

/** The endpoints of SCIM 2.0 (RFC 7644 section 3.2), for the directory of an enterprise. */
export const SCIM_ROUTES: readonly ScimRoute[] = [
  ...routesOf(`${SCIM_PATH}/Users`, {
    list: listUsers,
    get: getUser,
    create: createUser,
    replace: replaceUser,
    patch: patchUser,
    remove: deleteUser,
  }),
  ...routesOf(`${SCIM_PATH}/Groups`, {
    list: listGroups,
    get: getGroup,
    create: createGroup,
    replace: replaceGroup,
    patch: patchGroup,
    remove: removeGroup,
  }),
  [
    'get',
    `${SCIM_PATH}/ServiceProviderConfig`,
    forDirectory(({ c, context }) => ok(scimReply(c, serviceProviderConfig(baseUrl(context))))),
  ],
  ...describedRoutes('ResourceTypes', resourceTypes),
  ...describedRoutes('Schemas', schemaResources),
];

/** A list that describes this server, and each of its items. */
function describedRoutes(name: string, describe: (base: string) => readonly { readonly id: string }[]): ScimRoute[] {
  return [
    [
      'get',
      `${SCIM_PATH}/${name}`,
      forDirectory(({ c, context }) => {
        const all = describe(baseUrl(context));
        return ok(scimReply(c, listResponse(all, { total: all.length, startIndex: 1 })));
      }),
    ],
    [
      'get',
      `${SCIM_PATH}/${name}/{id}`,
      forDirectory(({ c, context, id }) => {
        const found = describe(baseUrl(context)).find((each) => each.id === id);
        return found === undefined ? err(unknownResource(id)) : ok(scimReply(c, found));
      }),
    ],
  ];
}

function reply(
  { c }: ScimCall,
  result: Result<ScimResource, ApiError>,
  status: 200 | 201 = 200,
): Result<Response, ApiError> {
  return result.ok ? ok(resourceReply(c, result.value, status)) : result;
}

async function answerList(call: ScimCall, list: Resources['list']): Promise<Result<Response, ApiError>> {
  const query = listQueryOf(call.c);
  if (!query.ok) return query;
  const { total, resources } = await list(call.context, call.directory, query.value);
  const bodies = resources.map(({ body }) => body);
  return ok(scimReply(call.c, listResponse(bodies, { total, startIndex: query.value.startIndex })));
}

/** RFC 7644 section 3.4.2.4: a start below 1 is 1, and a count below 0 is 0. */
function listQueryOf(c: AppContext): Result<ListQuery, ApiError> {
  const text = c.req.query('filter');
  const filter = text === undefined || text.trim() === '' ? null : parseFilter(text);
  if (filter !== null && !filter.ok)
    return err(unreadable({ ...filter.error, detail: `filter ${filter.error.detail}` }));
  const startIndex = wholeNumber(c.req.query('startIndex'), 1);
  const count = wholeNumber(c.req.query('count'), DEFAULT_RESULTS);
  if (startIndex === null || count === null) return err(invalidValue('startIndex and count must be whole numbers'));
  return ok({
    filter: filter === null ? null : filter.value,
    startIndex: Math.max(1, startIndex),
    count: Math.min(MAX_RESULTS, Math.max(0, count)),
    wanted: wantedOf(c),
  });
}

function wholeNumber(text: string | undefined, byDefault: number): number | null {
  if (text === undefined) return byDefault;
  return /^-?\d{1,9}$/.test(text) ? Number(text) : null;
}

function wantedOf(c: AppContext): Wanted {
  const only = namesOf(c.req.query('attributes'));
  return { only: only.size === 0 ? null : only, without: namesOf(c.req.query('excludedAttributes')) };
}

/** Lower-case names of attributes; a sub-attribute stands for its attribute. */
function namesOf(list: string | undefined): ReadonlySet<string> {
  const names = (list ?? '').slice(0, 2_000).split(',');
  return new Set(
    names.map((name) => localName(name.trim()).toLowerCase().split('.')[0] ?? '').filter((name) => name !== ''),
  );
}
