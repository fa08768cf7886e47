import type { ScimProblem } from '../../shared/scim/scim_problem.ts';
import { apiError, type ApiError } from '../../shared/wire/errors.ts';

/** A request of a directory that cannot be read. The keyword of RFC 7644 section 3.12 goes into the reply. */
export function unreadable({ scimType, detail }: ScimProblem): ApiError {
  return apiError('invalid_input', detail, { scim_type: scimType });
}

/** A value that is not allowed. */
export function invalidValue(detail: string): ApiError {
  return unreadable({ scimType: 'invalidValue', detail });
}

/** Another resource has a name that has to be unique. */
export function notUnique(detail: string): ApiError {
  return apiError('name_taken', detail, { scim_type: 'uniqueness' });
}

export function unknownResource(id: string): ApiError {
  return apiError('not_found', `there is no resource ${JSON.stringify(id.slice(0, 64))}`);
}

/** The token was revoked after the call was authenticated. */
export function directoryGone(): ApiError {
  return apiError('unauthenticated', 'the token is not valid: create another one in the settings of the enterprise');
}

export function versionChanged(): ApiError {
  return apiError('version_changed', 'the resource has another version than If-Match names: read it again');
}
