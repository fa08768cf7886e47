import { z } from 'zod';
import { page, pageQuery, time } from './primitives.ts';

/** The id of a browser's session, or of a program's sign-in. */
const signInId = z.string().regex(/^(?:bse|fam)_[0-7][0-9a-hjkmnp-tv-z]{25}$/, 'is not the id of a sign-in');

/** A browser or a program that is signed in as the caller. */
const signInRecord = z
  .object({
    id: signInId,
    kind: z.enum(['browser', 'program']),
    /** The browser's or program's own name for itself. */
    client: z.string(),
    created_at: time,
    last_seen_at: time,
    expires_at: time,
    /** True for the sign-in that makes this call. */
    current: z.boolean(),
  })
  .meta({ id: 'SignIn' });
export type SignInRecord = z.infer<typeof signInRecord>;

export const signInsQuery = z.strictObject({ ...pageQuery });
export const signInsPage = page(signInRecord).meta({ id: 'SignInsPage' });
export const signInParams = z.strictObject({ id: signInId });
