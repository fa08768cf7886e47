import { randomBytes } from 'node:crypto';
import { type RefusalReason, REFUSALS } from '../../shared/model/refusal.ts';
import { newId } from '../../shared/wire/ids.ts';

const ERROR_STATUS = {
  invalid_json: 400,
  invalid_input: 400,
  /** The args do not fit the operation; details: `{fields}`. */
  invalid_args: 400,
  unauthenticated: 401,
  host_token_required: 403,
  origin_not_allowed: 403,
  /** Nobody on this machine has consented to the MCP server's present configuration. */
  consent_needed: 403,
  /** The MCP server runs unchecked code, which needs a consent that says so. */
  unchecked_code: 403,
  /** The connector has no credential. */
  binding_required: 403,
  not_found: 404,
  step_not_in_lock: 404,
  connector_operation_not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  session_without_plan: 409,
  session_of_plan: 409,
  step_without_reach: 409,
  not_the_container: 409,
  mcp_server_disabled: 409,
  credential_missing: 409,
  authorisation_needed: 409,
  shared_network: 409,
  egress_unavailable: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  misdirected_host: 421,
  plan_lock_invalid: 422,
  plan_lock_foreign: 422,
  command_refused: 422,
  internal_error: 500,
  upstream_response_too_large: 502,
  namespace_forbidden: 503,
  listener_failed: 503,
  engine_unavailable: 503,
  gateway_unavailable: 503,
  state_unusable: 503,
} as const;
type LocalErrorCode = keyof typeof ERROR_STATUS | RefusalReason;

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

export function noSessionError(sessionId: string): LocalError {
  return localError('not_found', `There is no live session ${JSON.stringify(sessionId.slice(0, 64))}.`);
}

export function auditUnavailableError(): LocalError {
  return localError('audit_unavailable', 'The audit spool is full or cannot be written; see `svc doctor`.');
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

/** A route that a session's token opens was called without one. */
export const TOKEN_REQUIRED = localError('unauthenticated', 'Give the session’s token (SVC_TOKEN) as a bearer token.');
