import { z } from 'zod';
import { GROUP_KIND, type ResourceKind, USER_KIND } from '../../shared/scim/schemas.ts';
import { SCIM_PATH } from '../../shared/wire/scim_tokens.ts';
import { sha256Base64Url } from '../kernel/encoding.ts';
import type { ServiceContext } from '../kernel/service_context.ts';
import { type DirectoryGroup, listMembersOfGroups } from '../store/people/scim_groups.ts';
import { type DirectoryUser, listDirectoryGroupsOf } from '../store/people/scim_users.ts';

/** A resource as a directory reads it. */
export interface ScimResource {
  readonly body: Readonly<Record<string, unknown>>;
  /** A weak entity tag over the body. */
  readonly version: string;
  readonly location: string;
}

/** What is stored of a user besides its columns. */
export const storedAttributes = z.object({
  displayName: z.string().optional(),
  name: z.record(z.string(), z.string()).optional(),
  emails: z.array(z.record(z.string(), z.unknown())),
});

/** Attributes that a caller wants or does not want (RFC 7644 section 3.9), lower-case. */
export interface Wanted {
  readonly only: ReadonlySet<string> | null;
  readonly without: ReadonlySet<string>;
}

export const EVERYTHING: Wanted = { only: null, without: new Set() };

/** Whether a reply has an attribute. What identifies a resource is always in it. */
export function isWanted({ only, without }: Wanted, name: string): boolean {
  if (['schemas', 'id', 'meta'].includes(name)) return true;
  return !without.has(name.toLowerCase()) && (only === null || only.has(name.toLowerCase()));
}

/** The part of a user that a directory writes, by canonical names. */
export function writtenUser({ user, scim }: DirectoryUser) {
  const { displayName, name, emails } = storedAttributes.parse(JSON.parse(scim.attributes));
  return {
    userName: scim.userName,
    ...(scim.externalId !== null && { externalId: scim.externalId }),
    ...(displayName !== undefined && { displayName }),
    ...(name !== undefined && { name }),
    emails,
    active: user.suspendedAt === null,
  };
}

export async function viewUsers(
  context: ServiceContext,
  rows: readonly DirectoryUser[],
  wanted: Wanted,
): Promise<ScimResource[]> {
  const ids = rows.map(({ user }) => user.id);
  const groups = isWanted(wanted, 'groups') && ids.length > 0 ? await listDirectoryGroupsOf(context.database, ids) : [];
  const ofUsers = partsBy(groups, ({ userId }) => userId);
  return Promise.all(
    rows.map((row) => {
      const attributes = { ...writtenUser(row), groups: ofUsers.get(row.user.id) ?? [] };
      const { id } = row.user;
      const { createdAt, updatedAt } = row.scim;
      return viewResource(context, USER_KIND, { id, createdAt, updatedAt, attributes }, wanted);
    }),
  );
}

export async function viewGroups(
  context: ServiceContext,
  rows: readonly DirectoryGroup[],
  wanted: Wanted,
): Promise<ScimResource[]> {
  const ids = rows.map(({ group }) => group.id);
  const people = isWanted(wanted, 'members') && ids.length > 0 ? await listMembersOfGroups(context.database, ids) : [];
  const ofGroups = partsBy(people, ({ groupId }) => groupId);
  return Promise.all(
    rows.map(({ group, scim }) => {
      const attributes = {
        displayName: group.name,
        ...(scim.externalId !== null && { externalId: scim.externalId }),
        members: ofGroups.get(group.id) ?? [],
      };
      const { id, createdAt } = group;
      return viewResource(context, GROUP_KIND, { id, createdAt, updatedAt: scim.updatedAt, attributes }, wanted);
    }),
  );
}

interface Part {
  readonly value: string;
  readonly display: string;
}

/** What belongs to each resource: a page may have hundreds of thousands of members. */
function partsBy<T extends Part>(parts: readonly T[], idOf: (part: T) => string): ReadonlyMap<string, readonly Part[]> {
  const found = new Map<string, Part[]>();
  for (const part of parts) {
    const { value, display } = part;
    const known = found.get(idOf(part));
    if (known === undefined) found.set(idOf(part), [{ value, display }]);
    else known.push({ value, display });
  }
  return found;
}

interface Described {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

async function viewResource(
  context: ServiceContext,
  { name, path, schema }: ResourceKind,
  { id, createdAt, updatedAt, attributes }: Described,
  wanted: Wanted,
): Promise<ScimResource> {
  const shown = Object.fromEntries(Object.entries(attributes).filter(([attribute]) => isWanted(wanted, attribute)));
  const location = `${baseUrl(context)}/${path}/${id}`;
  const version = `W/"${(await sha256Base64Url(JSON.stringify([id, shown]))).slice(0, 22)}"`;
  const meta = { resourceType: name, created: createdAt, lastModified: updatedAt, location, version };
  return { body: { schemas: [schema], id, ...shown, meta }, version, location };
}

/** Where the endpoints are. */
export function baseUrl({ publicUrl }: Pick<ServiceContext, 'publicUrl'>): string {
  return `${publicUrl ?? ''}${SCIM_PATH}`;
}
