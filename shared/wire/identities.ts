import { z } from 'zod';
import { id, page, pageQuery, time } from './primitives.ts';

/** A sign-in method of the caller: an identity at a provider, or an address with a password. */
const identityRecord = z
  .object({
    id: id('idn'),
    /** A provider's name, `password`, or the id of the enterprise that owns the provider. */
    provider: z.string(),
    title: z.string(),
    issuer: z.string(),
    /** As last reported by the provider. */
    email: z.string(),
    email_verified: z.boolean(),
    created_at: time,
    last_used_at: time,
  })
  .meta({ id: 'Identity' });
export type IdentityRecord = z.infer<typeof identityRecord>;

export const identitiesQuery = z.strictObject({ ...pageQuery });
export const identitiesPage = page(identityRecord).meta({ id: 'IdentitiesPage' });
export const identityParams = z.strictObject({ id: id('idn') });
