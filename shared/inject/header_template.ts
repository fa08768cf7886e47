import { ok } from '../model/result.ts';
import { byteTextOf } from './byte_text.ts';
import { findPresentedInHeader, replaceHeader, swapHeader } from './credential_header.ts';
import type { InjectionOf, SchemeAdapter } from './scheme_adapter.ts';

/** Any header whose value is a verbatim template, with `{token}` in the credential's place. */
export const HEADER_TEMPLATE: SchemeAdapter<'header-template'> = {
  placeHeader: (injection) => injection.header.toLowerCase(),
  deriveSecrets: () => [],
  findPresented(injection, request, sentinel) {
    const expected = sentinel === null ? null : fillTemplate(injection, sentinel);
    return findPresentedInHeader(request.fields, injection.header.toLowerCase(), (value) => value === expected);
  },
  write(injection, { request, credential, sentinel }) {
    const write = sentinel === null ? replaceHeader : swapHeader;
    return ok({ ...request, fields: write(request.fields, injection.header, fillTemplate(injection, credential)) });
  },
};

/** The template with `token` for each `{token}`; a `$` or `{token}` within the token has no special meaning. */
function fillTemplate(injection: InjectionOf<'header-template'>, token: string): string {
  return byteTextOf(injection.template.split('{token}').join(token));
}
