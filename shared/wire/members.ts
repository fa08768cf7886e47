import { z } from 'zod';
import { ROLES } from '../model/role.ts';
import { id, page, pageQuery, time } from './primitives.ts';

/** A user of the caller's enterprise. */
export const memberRecord = z
  .object({
    id: id('usr'),
    email: z.string().nullable(),
    display_name: z.string(),
    role: z.enum(ROLES),
    created_at: time,
    suspended_at: time.nullable(),
  })
  .meta({ id: 'Member' });
export type MemberRecord = z.infer<typeof memberRecord>;

/** `PUT /v1/members/{id}`. */
export const memberInput = z.strictObject({ role: z.enum(ROLES), suspended: z.boolean() }).meta({ id: 'ChangeMember' });
export type MemberInput = z.infer<typeof memberInput>;

export const membersQuery = z.strictObject({ ...pageQuery });
export const membersPage = page(memberRecord).meta({ id: 'MembersPage' });
export const memberParams = z.strictObject({ id: id('usr') });
