import type { InjectionScheme } from '../model/host_binding.ts';
import { BASIC } from './basic.ts';
import { BEARER } from './bearer.ts';
import { HEADER_TEMPLATE } from './header_template.ts';
import { QUERY_PARAM } from './query_param.ts';
import type { InjectionOf, SchemeAdapter } from './scheme_adapter.ts';
import { SIGV4_RESIGN } from './sigv4_resign.ts';

type SchemeTable = { readonly [S in InjectionScheme]: SchemeAdapter<S> };

/** The closed set of schemes. A new scheme is one file and one entry here. */
const SCHEMES: SchemeTable = {
  bearer: BEARER,
  basic: BASIC,
  'header-template': HEADER_TEMPLATE,
  'query-param': QUERY_PARAM,
  'sigv4-resign': SIGV4_RESIGN,
};

/** The adapter of an injection's scheme. */
export function adapterOf<S extends InjectionScheme>(
  injection: InjectionOf<S> & { readonly scheme: S },
): SchemeAdapter<S> {
  return SCHEMES[injection.scheme];
}
