import { ok } from '../model/result.ts';
import { base64Of, byteTextOf, textOfBytes } from './byte_text.ts';
import { findPresentedInHeader, replaceHeader, swapHeader } from './credential_header.ts';
import type { SchemeAdapter } from './scheme_adapter.ts';

/**
 * HTTP Basic (RFC 7617), as UTF-8. The credential is the password. A sentinel sent as the user name is inert, because
 * servers show user names in logs and pages.
 */
export const BASIC: SchemeAdapter<'basic'> = {
  placeHeader: () => 'authorization',
  deriveSecrets: (injection, credential) => [base64Of(`${injection.username}:${credential}`).replace(/=+$/, '')],
  findPresented(_injection, request, sentinel) {
    const expected = sentinel === null ? null : byteTextOf(sentinel);
    return findPresentedInHeader(
      request.fields,
      'authorization',
      (value) => expected !== null && basicPair(value)?.password === expected,
    );
  },
  write(injection, { request, credential, sentinel }) {
    if (sentinel === null) {
      const value = `Basic ${base64Of(`${injection.username}:${credential}`)}`;
      return ok({ ...request, fields: replaceHeader(request.fields, 'Authorization', value) });
    }
    const sent = request.fields.find((field) => field.name === 'authorization');
    const username = sent === undefined ? undefined : basicPair(sent.value)?.username;
    const pair = `${username === undefined ? injection.username : textOfBytes(username)}:${credential}`;
    return ok({ ...request, fields: swapHeader(request.fields, 'Authorization', `Basic ${base64Of(pair)}`) });
  },
};

interface BasicPair {
  readonly username: string;
  readonly password: string;
}

/** The decoded pair of a Basic value, as byte text; null if it is none. */
export function basicPair(value: string): BasicPair | null {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(value)?.[1];
  if (encoded === undefined) return null;
  const pair = decodeBase64(encoded);
  const colon = pair?.indexOf(':') ?? -1;
  if (pair === null || colon < 0) return null;
  return { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

function decodeBase64(text: string): string | null {
  try {
    return atob(text);
  } catch {
    return null;
  }
}
