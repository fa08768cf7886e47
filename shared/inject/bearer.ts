import { ok } from '../model/result.ts';
import { byteTextOf } from './byte_text.ts';
import { findPresentedInHeader, replaceHeader, swapHeader } from './credential_header.ts';
import type { SchemeAdapter } from './scheme_adapter.ts';

/** `Authorization: Bearer <token>` (RFC 6750). A sentinel is also recognised after `token`, which GitHub's clients send. */
export const BEARER: SchemeAdapter<'bearer'> = {
  placeHeader: () => 'authorization',
  deriveSecrets: () => [],
  findPresented(_injection, request, sentinel) {
    const expected = sentinel === null ? null : byteTextOf(sentinel);
    return findPresentedInHeader(request.fields, 'authorization', (value) => bearerToken(value) === expected);
  },
  write(_injection, { request, credential, sentinel }) {
    const write = sentinel === null ? replaceHeader : swapHeader;
    const fields = write(request.fields, 'Authorization', `Bearer ${byteTextOf(credential)}`);
    return ok({ ...request, fields });
  },
};

/** The token of an Authorization value; undefined for another scheme. */
function bearerToken(value: string): string | undefined {
  return /^(?:bearer|token) +(\S+)$/i.exec(value)?.[1];
}
