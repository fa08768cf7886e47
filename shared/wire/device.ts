import { z } from 'zod';
import { line } from './primitives.ts';

/** The form of a refresh token. */
export const REFRESH_TOKEN_PREFIX = 'svc_rt_';

/** `POST /auth/device/code`: a program asks a signed-in person to sign it in, in a browser (RFC 8628). */
export const deviceInput = z
  .strictObject({
    client_name: line(100).trim().min(1, 'is empty: name the program and its machine, such as svc on laptop'),
  })
  .meta({ id: 'DeviceRequest' });

/** 200. The person opens `verification_uri` and types `user_code`; the program polls with `device_code`. */
export const deviceReply = z
  .object({
    device_code: z.string(),
    user_code: z.string(),
    verification_uri: z.string(),
    /** Seconds. */
    expires_in: z.number().int(),
    /** Seconds between two polls; each `slow_down` adds five. */
    interval: z.number().int(),
  })
  .meta({ id: 'DeviceCode' });
export type DeviceReply = z.infer<typeof deviceReply>;

/** `POST /auth/device/token`. Refused with `authorization_pending` or `slow_down` until a person decides. */
export const devicePoll = z.strictObject({ device_code: z.string().max(200) }).meta({ id: 'DevicePoll' });

/** The tokens of a signed-in program. */
export const tokenPair = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    /** The lifetime of the access token in seconds. */
    expires_in: z.number().int(),
    /** Single use; the reply to it contains the next one. */
    refresh_token: z.string(),
  })
  .meta({ id: 'TokenPair' });
export type TokenPair = z.infer<typeof tokenPair>;

/** `POST /auth/refresh`, and `POST /auth/revoke`, which ends the sign-in. */
export const refreshInput = z.strictObject({ refresh_token: z.string().max(200) }).meta({ id: 'Refresh' });
