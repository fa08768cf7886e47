import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';
import { formatQuantity } from '../../../shared/model/limit_settings.ts';
import { apiError, type ApiError, ERROR_STATUS, type ErrorBody, fieldProblems } from '../../../shared/wire/errors.ts';
import { isKeyChange, isWorthRetrying } from '../../kernel/is_worth_retrying.ts';
import type { AppContext, Log } from './app_env.ts';
import { isScimPath, SCIM_MEDIA_TYPE, scimErrorBody } from './scim_error.ts';

const DISK_FULL = 'the disk of the database is full, so nothing can be stored: free some space there, then try again';
const KEY_CHANGED =
  'the master key was changed while this request ran, so nothing was stored: try again; if it stays, restart this worker with the new key in SVC_VAULT_KEY';

/** Turns an error into an HTTP reply. Nothing else does. */
export function errorReply(c: AppContext, error: ApiError): Response {
  const body: ErrorBody = { error: { ...error, details: error.details, request_id: c.get('requestId') } };
  const status: ContentfulStatusCode = ERROR_STATUS[error.code];
  if (status === 401) c.header('WWW-Authenticate', 'Bearer realm="svc"');
  if (isScimPath(c.req.path)) {
    return c.body(JSON.stringify(scimErrorBody(error)), status, { 'content-type': SCIM_MEDIA_TYPE });
  }
  return c.json(body, status);
}

/**
 * Answers a thrown error: a bug or a database failure. The log has its kind; the caller only learns that the control
 * plane failed.
 */
export function failureReply(c: AppContext, error: unknown, log: Log): Response {
  if (error instanceof HTTPException) return errorReply(c, fromHttpException(error));
  log({ level: 'error', message: 'a request failed', request_id: c.get('requestId'), ...describe(error) });
  return errorReply(c, fromFailure(error));
}

function fromFailure(error: unknown): ApiError {
  if (isKeyChange(error)) return apiError('master_key_changed', KEY_CHANGED);
  if (isWorthRetrying(error)) {
    return apiError('database_unavailable', isDiskFull(error) ? DISK_FULL : 'the database does not answer: try again');
  }
  return apiError('internal_error', 'the control plane failed: its log has details under the request_id');
}

function fromHttpException(error: HTTPException): ApiError {
  if (error.status === 413) return bodyTooLarge(null);
  if (error.status === 415)
    return apiError('unsupported_media_type', 'send the body as JSON, with content-type: application/json');
  return apiError('invalid_json', 'the body is not JSON: check its quotes, commas and braces');
}

/** Error messages may quote statement values, so only the kind and place of the error are logged. */
function describe(error: unknown): Record<string, string> {
  if (!(error instanceof Error)) return { error: typeof error };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return { error: error.name, code: codes(error).join(' < '), stack: frames.slice(0, 8).join(' | ') };
}

/** Trying again does not help then: somebody has to free space first. */
function isDiskFull(error: unknown): boolean {
  return error instanceof Error && codes(error).includes('SQLITE_FULL');
}

function codes(error: Error): string[] {
  const code = 'code' in error && typeof error.code === 'string' ? [error.code] : [];
  return error.cause instanceof Error ? [...code, ...codes(error.cause)] : code;
}

export function bodyNotUtf8(): ApiError {
  return apiError('invalid_json', 'the body is not UTF-8: encode the JSON as UTF-8');
}

export function bodyTooLarge(maxBytes: number | null): ApiError {
  const limit = maxBytes === null ? 'may be' : formatQuantity(maxBytes, 'bytes');
  return apiError('body_too_large', `the body is larger than ${limit}: send less at a time`);
}

/** The refusal of an input, naming each invalid field. A value is never quoted, because it may be a secret. */
export function invalidInput(target: string, error: z.core.$ZodError): ApiError {
  const fields = fieldProblems(error);
  const message = fields
    .map((problem) => `${problem.field === '' ? 'the body' : problem.field} ${problem.message}`)
    .join('; ');
  return apiError(target === 'query' ? 'invalid_query' : 'invalid_input', message, { fields });
}
