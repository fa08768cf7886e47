import { z } from 'zod';

/** What a refresh token looks like. */
export const REFRESH_TOKEN_PREFIX = 'svc_rt_';

/** The tokens of a program that is signed in. */
export const tokenPair = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    /** Seconds that the access token is good. */
    expires_in: z.number().int(),
    /** For one use: the reply to it holds the next one. */
    refresh_token: z.string(),
  })
  .meta({ id: 'TokenPair' });
export type TokenPair = z.infer<typeof tokenPair>;

/** `POST /auth/refresh`. */
export const refreshInput = z.strictObject({ refresh_token: z.string().max(200) }).meta({ id: 'Refresh' });
