import { z } from 'zod';
import { EFFECTS, EMIT_MECHANISMS, INJECTION_SCHEMES } from '../../model/host_binding.ts';
import { email } from '../auth.ts';
import { id, page, pageQuery, time } from '../primitives.ts';

/** The most shares that one person gives. */
export const MAX_SHARES = 500;

/** Whose shares are listed: those that the caller gave, those with the caller, or for admins all of the enterprise. */
export const SHARE_LISTS = ['given', 'received', 'all'] as const;

/**
 * What a share is to the caller, if it is with the caller. `to_accept`: a colleague shares it, and it is used once the caller
 * accepts it. `overridden`: another binding of the caller or the enterprise comes first. `paused`: whoever shares is suspended,
 * or changed the binding to one that cannot be shared.
 */
export const SHARE_STATES = ['in_force', 'to_accept', 'overridden', 'paused'] as const;

/** `POST /v1/shares`: one of `user_id`, `email` and `group_id`. */
export const shareInput = z
  .strictObject({
    /** A binding of the caller's own. */
    binding_id: id('bnd'),
    user_id: id('usr').optional(),
    /** The address of a colleague. */
    email: email.optional(),
    group_id: id('grp').optional(),
  })
  .superRefine(({ user_id: user, email: address, group_id: group }, context) => {
    if ([user, address, group].filter((each) => each !== undefined).length === 1) return;
    const message = 'name one receiver: group_id, user_id or email';
    context.addIssue({ code: 'custom', path: ['group_id'], message });
  })
  .meta({ id: 'CreateShare' });
export type ShareInput = z.infer<typeof shareInput>;

const person = z.object({ id: id('usr'), display_name: z.string() });

/** What is shared with whom. The vault path of the secret is the owner's own, and not shown. */
export const shareRecord = z
  .object({
    id: id('shr'),
    binding: z.object({
      id: id('bnd'),
      host: z.string(),
      scheme: z.enum(INJECTION_SCHEMES),
      emit_mechanism: z.enum(EMIT_MECHANISMS),
      allowed_hosts: z.array(z.string()),
      effect: z.enum(EFFECTS).nullable(),
      /** Its `updated_at`, which an acceptance repeats. */
      revision: time,
    }),
    shared_by: person,
    shared_with: z.object({ kind: z.enum(['user', 'group']), id: z.string(), display_name: z.string() }),
    created_at: time,
    state: z.enum(SHARE_STATES).nullable(),
  })
  .meta({ id: 'Share' });
export type ShareRecord = z.infer<typeof shareRecord>;

/** `POST /v1/shares/{id}/accept`: with the revision that the person saw. */
export const acceptInput = z.strictObject({ revision: time }).meta({ id: 'AcceptShare' });

export const sharesQuery = z.strictObject({ ...pageQuery, list: z.enum(SHARE_LISTS).default('given') });
export const sharesPage = page(shareRecord).meta({ id: 'SharesPage' });
export const shareParams = z.strictObject({ id: id('shr') });
