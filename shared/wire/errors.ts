import { z } from 'zod';

/** Every error code of the control API and the HTTP status that carries it: the one table (design section 7). */
export const ERROR_STATUS = {
  invalid_json: 400,
  invalid_input: 400,
  invalid_query: 400,
  invalid_cursor: 400,
  unauthenticated: 401,
  /** A sidecar's call whose token does not verify, or is for another call. */
  invalid_sidecar_call: 401,
  /** The sidecar's clock and ours differ by more than a minute; details: `{server_time}`. */
  clock_skew: 401,
  /** The one-time id of a sidecar's call was used before. */
  replayed_call: 401,
  sidecar_revoked: 401,
  cross_site_request: 403,
  admin_required: 403,
  not_found: 404,
  /** details: `{bindings: [{id, host, owner}]}`. */
  secret_in_use: 409,
  /** details: `{binding_id}`. */
  duplicate_binding: 409,
  conflict: 409,
  link_expired: 410,
  body_too_large: 413,
  unsupported_media_type: 415,
  misdirected_host: 421,
  internal_error: 500,
  database_unavailable: 503,
} as const satisfies Record<string, number>;
export type ErrorCode = keyof typeof ERROR_STATUS;

const ERROR_CODES = Object.keys(ERROR_STATUS).filter((code): code is ErrorCode => code in ERROR_STATUS);

/** One thing wrong with an input: which field, what is wrong with it and how to put it right. */
export const fieldProblem = z.object({ field: z.string(), message: z.string() });
export type FieldProblem = z.infer<typeof fieldProblem>;

/** The body of every error of the control API. `invalid_input` and `invalid_query` carry `details.fields`. */
export const errorBody = z
  .object({
    error: z.object({
      code: z.enum(ERROR_CODES),
      message: z.string(),
      details: z.record(z.string(), z.unknown()).optional(),
      request_id: z.string(),
    }),
  })
  .meta({ id: 'Error' });
export type ErrorBody = z.infer<typeof errorBody>;

/** An expected refusal of the control API, before it is answered. */
export interface ApiError {
  readonly code: ErrorCode;
  /** For the person who called: the problem and the fix. Never a secret. */
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** An {@link ApiError} value. */
export function apiError(code: ErrorCode, message: string, details?: Readonly<Record<string, unknown>>): ApiError {
  return { code, message, ...(details && { details }) };
}
