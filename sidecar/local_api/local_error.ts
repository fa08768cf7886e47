import { randomBytes } from 'node:crypto';
import { type RefusalReason, REFUSALS } from '../../shared/model/refusal.ts';
import { newId } from '../../shared/wire/ids.ts';

const ERROR_STATUS = {
  invalid_json: 400,
  invalid_input: 400,
  unauthenticated: 401,
  host_token_required: 403,
  not_found: 404,
  method_not_allowed: 405,
  body_too_large: 413,
  unsupported_media_type: 415,
  misdirected_host: 421,
  internal_error: 500,
} as const;
export type LocalErrorCode = keyof typeof ERROR_STATUS | RefusalReason;

/** An expected refusal of the local API. */
export interface LocalError {
  readonly code: LocalErrorCode;
  /** The problem and the fix. */
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A {@link LocalError} value. */
export function localError(code: LocalErrorCode, message: string, details?: LocalError['details']): LocalError {
  return { code, message, ...(details && { details }) };
}

/** The reply of a refusal: the control API's error body. */
export function errorReply(error: LocalError): Response {
  const body = { error: { ...error, request_id: newId('req', randomBytes(16)) } };
  const headers = error.code === 'unauthenticated' ? { 'www-authenticate': 'Bearer realm="svc"' } : undefined;
  return Response.json(body, { status: statusOf(error.code), ...(headers && { headers }) });
}

function statusOf(code: LocalErrorCode): number {
  return isOwn(code) ? ERROR_STATUS[code] : REFUSALS[code].status;
}

function isOwn(code: LocalErrorCode): code is keyof typeof ERROR_STATUS {
  return code in ERROR_STATUS;
}
