import { z } from 'zod';
import { id, line, page, pageQuery, time } from '../primitives.ts';
import { revision } from '../../net/http/if_match.ts';

export const MAX_GROUP_NAME = 100;

/** A group of an enterprise's people. */
export const groupRecord = z
  .object({
    id: id('grp'),
    name: z.string(),
    members: z.number().int(),
    created_at: time,
    /** `scim`: the directory of the enterprise manages it, and nobody changes it by hand. */
    managed_by: z.enum(['scim']).nullable().default(null),
    revision,
  })
  .meta({ id: 'Group' });
export type GroupRecord = z.infer<typeof groupRecord>;

const groupName = line(MAX_GROUP_NAME).trim().min(1, 'is empty: write a name, such as Data team');

/** `POST /v1/groups`. */
export const groupInput = z.strictObject({ name: groupName }).meta({ id: 'GroupInput' });
export type GroupInput = z.infer<typeof groupInput>;

/** `PUT /v1/groups/{id}`: with the `revision` that was read, only if nobody has renamed the group since. */
export const groupReplacement = z.strictObject({ name: groupName, revision }).meta({ id: 'GroupReplacement' });

/** A member of a group, as everybody in the enterprise sees it: without the address. */
export const groupMember = z.object({ id: id('usr'), display_name: z.string() }).meta({ id: 'GroupMember' });
export type GroupMember = z.infer<typeof groupMember>;

export const groupsQuery = z.strictObject({ ...pageQuery });
export const groupsPage = page(groupRecord).meta({ id: 'GroupsPage' });
export const groupMembersPage = page(groupMember).meta({ id: 'GroupMembersPage' });
export const groupParams = z.strictObject({ id: id('grp') });
export const groupMemberParams = z.strictObject({ id: id('grp'), user: id('usr') });
