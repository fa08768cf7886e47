import type { EmitMechanism, InjectionScheme } from '../../../shared/model/host_binding.ts';

/** Each scheme in words, with its format on the wire. */
export const SCHEMES: { readonly [S in InjectionScheme]: { readonly title: string; readonly wire: string } } = {
  bearer: { title: 'Bearer', wire: 'Authorization: Bearer <credential>' },
  basic: { title: 'Basic', wire: 'Authorization: Basic <user name:credential>' },
  'header-template': { title: 'Header', wire: 'a header of your choice, such as X-Api-Key: <credential>' },
  'query-param': { title: 'Query parameter', wire: 'a parameter of the query, such as ?key=<credential>' },
  'sigv4-resign': { title: 'AWS signature', wire: 'Authorization: AWS4-HMAC-SHA256, signed again with the credential' },
};

const EMIT_WORDS: { readonly [M in EmitMechanism]: string } = {
  inject: 'to every request',
  'sentinel-swap': 'in place of a placeholder',
};

export function schemeTitle(scheme: string): string {
  return isScheme(scheme) ? SCHEMES[scheme].title : scheme;
}

/** How the credential gets into the request. */
export function emitWords(emit: string): string {
  return isEmitMechanism(emit) ? EMIT_WORDS[emit] : emit;
}

function isScheme(text: string): text is InjectionScheme {
  return Object.hasOwn(SCHEMES, text);
}

function isEmitMechanism(text: string): text is EmitMechanism {
  return Object.hasOwn(EMIT_WORDS, text);
}
