import { ok, type Result } from '../../../shared/model/result.ts';
import { POLICY_VERSION_HEADER } from '../../../shared/wire/channel.ts';
import type { ApiError } from '../../../shared/wire/errors.ts';
import type { Changed } from '../../kernel/policy_change.ts';
import type { Reply } from './operation.ts';

/** 200 with the value as JSON. */
export function jsonReply<T>(result: Result<T, ApiError>): Result<Reply, ApiError> {
  return result.ok ? ok({ status: 200, json: result.value }) : result;
}

/** 201 with the value as JSON. */
export function createdReply<T>(result: Result<T, ApiError>): Result<Reply, ApiError> {
  return result.ok ? ok({ status: 201, json: result.value }) : result;
}

/** 204. */
export function emptyReply(result: Result<unknown, ApiError>): Result<Reply, ApiError> {
  return result.ok ? ok({ status: 204 }) : result;
}

/** A reply with the first policy version that includes the change. */
export function changeReply<T>(
  result: Result<Changed<T>, ApiError>,
  reply: (value: T) => Exclude<Reply, Response>,
): Result<Reply, ApiError> {
  if (!result.ok) return result;
  const headers = { [POLICY_VERSION_HEADER]: String(result.value.policyVersion) };
  return ok({ ...reply(result.value.value), headers });
}
