import { ERROR_SCHEMA } from '../../../shared/scim/schemas.ts';
import { type ApiError, ERROR_STATUS } from '../../../shared/wire/errors.ts';
import { SCIM_PATH } from '../../../shared/wire/scim_tokens.ts';

export const SCIM_MEDIA_TYPE = 'application/scim+json';

/** Whether a path is one of SCIM's, whose errors have a form of their own. */
export function isScimPath(path: string): boolean {
  return path === SCIM_PATH || path.startsWith(`${SCIM_PATH}/`);
}

/** The body of an error (RFC 7644 section 3.12). */
export function scimErrorBody({ code, message, details }: ApiError): object {
  const scimType = details?.['scim_type'];
  return {
    schemas: [ERROR_SCHEMA],
    status: String(ERROR_STATUS[code]),
    ...(typeof scimType === 'string' && { scimType }),
    detail: message,
  };
}
