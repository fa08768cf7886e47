import { z } from 'zod';
import type { FieldProblem } from '../model/problem.ts';

/** Every error code of the control API with its HTTP status (design section 7). */
export const ERROR_STATUS = {
  invalid_json: 400,
  invalid_input: 400,
  invalid_query: 400,
  invalid_cursor: 400,
  /** The args do not fit the operation; details: `{fields}`. */
  invalid_args: 400,
  /** The browser's callback does not match the sign-in that it started. */
  sign_in_expired: 400,
  /** A wrong or expired sign-up code. */
  verification_failed: 400,
  /** The domain does not prove that it belongs to this enterprise. details: `{domain, url, content}`. */
  domain_not_proven: 400,
  /** The replies to a program that polls for its sign-in (RFC 8628 section 3.5). */
  authorization_pending: 400,
  slow_down: 400,
  access_denied: 400,
  expired_token: 400,
  unauthenticated: 401,
  /** A suspended user, and other reasons why an account cannot sign in. */
  account_unavailable: 401,
  wrong_email_or_password: 401,
  /** A sidecar's call whose token does not verify, or is for another call. */
  invalid_sidecar_call: 401,
  /** The sidecar's clock differs from ours by more than a minute; details: `{server_time}`. */
  clock_skew: 401,
  /** The one-time id of a sidecar's call was used before. */
  replayed_call: 401,
  sidecar_revoked: 401,
  /** A refresh token that was used, revoked or never issued. */
  sign_in_over: 401,
  cross_site_request: 403,
  admin_required: 403,
  /** The invitation is for another address than those that the caller has proven. */
  invitation_for_another: 403,
  /** The provider gives no usable email address. */
  email_required: 403,
  provider_not_allowed: 403,
  domain_not_allowed: 403,
  /** The sign-in is vouched for by an enterprise's provider, or is a personal token; the call needs the person's own. */
  own_sign_in_required: 403,
  /** Only the enterprise's own provider may be used. details: `{login_url}`. */
  sso_required: 403,
  /** The address has an account in another enterprise. */
  account_elsewhere: 403,
  /** The personal token is not valid for this operation. details: `{scope}`; null if no personal token is. */
  insufficient_scope: 403,
  /** details: `{approval_id}`. */
  approval_required: 403,
  /** details: `{approval_id}`. */
  approval_denied: 403,
  /** A rule of the enterprise says that others approve this request. details: `{needs}`. */
  approver_required: 403,
  /** A grant is for one's own session only. */
  grant_not_allowed: 403,
  /** The connector has no credential. details: `{connector_id}`. */
  binding_required: 403,
  /** A rule of the enterprise does not let the MCP server run. */
  mcp_rule: 403,
  /** The token of a job does not let it join as this service account. details: `{reason}`, and for claims `{claims}`. */
  join_refused: 403,
  not_found: 404,
  connector_operation_not_found: 404,
  /** This control plane has no configured origin, so programs cannot sign in to it. */
  public_url_missing: 404,
  method_not_allowed: 405,
  /** details: `{bindings: [{id, host, owner}], connectors: [{id, fqn, owner}]}`; for an MCP server also `mcp_servers: [{id, name, owner}]`. */
  secret_in_use: 409,
  /** The sign-in would go to another party's host. details: `{authorization_server, hosts}`. */
  authorization_server_unconfirmed: 409,
  /** details: `{binding_id}`. */
  duplicate_binding: 409,
  /** Other content is installed under this name and version. details: `{connector_id, content_hash}`. */
  connector_version_conflict: 409,
  /** Another MCP server of this owner has the name. details: `{server_id}`. */
  name_taken: 409,
  /** details: `{state}`. */
  approval_not_pending: 409,
  /** Only a request whose agent waits can be shown. */
  approval_not_held: 409,
  /** An enterprise must keep an owner who can sign in. */
  last_owner: 409,
  /** The person is in other enterprises too, which come first. details: `{enterprises}`. */
  other_enterprises: 409,
  /** Somebody else is in the enterprise, or the caller is not its owner. */
  not_alone: 409,
  /** What a deletion asks to be repeated was not. */
  not_confirmed: 409,
  /** A change to sign-in that would lock out the user who makes it. */
  would_lock_out: 409,
  /** The person has a user in the enterprise already. */
  already_member: 409,
  /** The identity, or its verified address, belongs to another account. */
  identity_taken: 409,
  /** The domain belongs to another enterprise. */
  domain_taken: 409,
  /** The directory of the enterprise manages the group, or has deactivated the member. */
  managed_by_directory: 409,
  conflict: 409,
  link_expired: 410,
  /** The request to join was decided or withdrawn, or has expired. */
  join_request_over: 410,
  /** The invitation was used or revoked, or has expired. */
  invitation_over: 410,
  /** The If-Match of a directory names another version. */
  version_changed: 412,
  body_too_large: 413,
  unsupported_media_type: 415,
  misdirected_host: 421,
  /** A registry entry that cannot be installed safely. */
  package_not_installable: 422,
  /** An install that needs more values. details: `{inputs}`. */
  inputs_required: 422,
  /** This caller has reached the limit of open streams, waiting polls or verifications. */
  too_many_open_calls: 429,
  /** details: `{retry_after_seconds}`. */
  too_many_attempts: 429,
  /** The enterprise has made as many calls as it may. details: `{retry_after_seconds}`; also as `Retry-After`. */
  too_many_calls: 429,
  /** This user has reached the limit of pending approvals. */
  too_many_approvals: 429,
  /** The enterprise has as many audit sinks as it may have. */
  too_many_sinks: 409,
  /** The enterprise or the user has as many of this kind as it may have. */
  limit_reached: 409,
  internal_error: 500,
  upstream_unreachable: 502,
  upstream_tls_failed: 502,
  upstream_invalid_reply: 502,
  upstream_response_too_large: 502,
  /** The sign-in provider refuses, or does not answer correctly. */
  sign_in_failed: 502,
  /** The issuer of a job's token does not publish its keys correctly. */
  issuer_failed: 502,
  /** A code could not be sent. */
  mail_failed: 502,
  /** The registry of MCP servers does not answer, and nothing is cached. */
  registry_unavailable: 502,
  /** The provider of an oauth2 credential does not answer correctly. */
  oauth_provider_failed: 502,
  database_unavailable: 503,
  /** The worker seals with a master key that was replaced. */
  master_key_changed: 503,
  /** The program is stopping, or its database has another schema version. */
  not_ready: 503,
  credential_unavailable: 503,
  /** details: `{connector_id, authorise: [method, path]}`. */
  reauthorisation_required: 503,
} as const satisfies Record<string, number>;
type ErrorCode = keyof typeof ERROR_STATUS;

const ERROR_CODES = Object.keys(ERROR_STATUS).filter((code): code is ErrorCode => code in ERROR_STATUS);

/** More than a person would read; an input with many wrong fields gets no longer reply. */
const MAX_FIELD_PROBLEMS = 20;
const MAX_SHOWN_NAME = 64;

/** A schema's problems with an input, field by field. Values are never quoted, because they may be secrets. */
export function fieldProblems(error: z.core.$ZodError): FieldProblem[] {
  const problems = error.issues.flatMap((issue) => {
    const path = issue.path.map(String);
    const places = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, shortName(key)]) : [path];
    return places.map((place) => ({ field: place.join('.'), message: issue.message }));
  });
  return problems.slice(0, MAX_FIELD_PROBLEMS);
}

function shortName(key: string): string {
  return key.length <= MAX_SHOWN_NAME ? key : `${key.slice(0, MAX_SHOWN_NAME)}…`;
}

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
  /** For the caller: the problem and the fix. Never a secret. */
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** An {@link ApiError} value. */
export function apiError(code: ErrorCode, message: string, details?: Readonly<Record<string, unknown>>): ApiError {
  return { code, message, ...(details && { details }) };
}
