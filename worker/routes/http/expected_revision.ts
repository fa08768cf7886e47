import { err, ok, type Result } from '../../../shared/model/result.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';

/** The revision that a replacement is for, from the header or the body; null if the caller names none. Refuses with `invalid_input` if both name one and they differ. */
export function expectedRevision<T>(ifMatch: T | undefined, revision: T | undefined): Result<T | null, ApiError> {
  if (ifMatch === undefined || revision === undefined || ifMatch === revision) return ok(ifMatch ?? revision ?? null);
  const message = 'is not the revision of the body: send one of them';
  return err(apiError('invalid_input', `If-Match ${message}`, { fields: [{ field: 'If-Match', message }] }));
}
