import { z } from 'zod';
import { ROLES } from '../model/role.ts';
import { departureReply } from './members.ts';
import { id, time } from './primitives.ts';

export const healthReply = z
  .object({ status: z.enum(['ok', 'unavailable']), version: z.string(), time, mode: z.enum(['local', 'hosted']) })
  .meta({ id: 'Health' });

/** `GET /v1/ready`. */
export const readyReply = z.object({ status: z.literal('ready'), schema: z.number().int() }).meta({ id: 'Ready' });

/** `GET /v1/me`. */
export const meReply = z
  .object({
    id: id('usr'),
    enterprise_id: id('ent'),
    email: z.string().nullable(),
    display_name: z.string(),
    role: z.enum(ROLES),
    /** The version of this user's newest snapshot. */
    policy_version: z.number().int(),
    created_at: time,
  })
  .meta({ id: 'Me' });
export type MeReply = z.infer<typeof meReply>;

/** `GET /v1/me/deletion`: what would go with the account. */
export const accountDeletionReply = z
  .object({
    /** What `DELETE /v1/me?confirm=` repeats. */
    confirm: z.string(),
    /** Nobody else is in the enterprise: the counts include what is its own. */
    deletes_enterprise: z.boolean(),
    ...departureReply.shape,
  })
  .meta({ id: 'AccountDeletion' });
export type AccountDeletionReply = z.infer<typeof accountDeletionReply>;

/** `DELETE /v1/me?confirm=ADDRESS`. */
export const accountDeletionQuery = z.strictObject({ confirm: z.string().max(254) });

/** `GET /v1/enterprise`. */
export const enterpriseReply = z
  .object({ id: id('ent'), slug: z.string(), name: z.string(), created_at: time })
  .meta({ id: 'Enterprise' });
export type EnterpriseReply = z.infer<typeof enterpriseReply>;

/** `POST /v1/sign-in-links` in local mode: a link that signs a browser in once. */
export const signInLinkReply = z.object({ url: z.string(), expires_at: time }).meta({ id: 'SignInLink' });
