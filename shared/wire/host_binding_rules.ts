import type { z } from 'zod';
import { INJECTION_SCHEMES, type InjectionScheme } from '../model/host_binding.ts';
import { MINTED_KEY_ID } from '../model/source_kind.ts';
import { didYouMean } from '../model/near_match.ts';
import { portOfHost } from '../net/host_port.ts';

/** The parameters of each scheme, by wire name. */
export const SCHEME_PARAMETERS: {
  readonly [S in InjectionScheme]: { readonly required: readonly string[]; readonly optional: readonly string[] };
} = {
  bearer: { required: [], optional: [] },
  basic: { required: ['username'], optional: [] },
  'header-template': { required: ['header', 'template'], optional: [] },
  'query-param': { required: ['query_param'], optional: [] },
  'sigv4-resign': { required: ['access_key_id', 'region', 'service'], optional: ['session_token_ref'] },
};

/** What to write for each required parameter. */
const PARAMETER_FIX: Readonly<Record<string, string>> = {
  username: 'the user name that goes with the credential',
  header: 'the name of the header',
  template: 'the value of the header with {token} where the credential goes',
  query_param: 'the name of the query-string parameter',
  access_key_id: `the access key id that belongs to the secret key, or "${MINTED_KEY_ID}" for a key set that AWS mints`,
  region: 'the region the signature is for; it is never guessed from the host',
  service: 'the service the signature is for; it is never guessed from the host',
};

/** Services whose clients can sign without a hash of the whole body, so that the body can be signed in transit. */
const STREAMING_SERVICES: readonly string[] = ['s3', 's3express', 's3-outposts', 's3-object-lambda'];

type Fields = Readonly<Record<string, unknown>>;
type Report = (field: string, message: string) => void;

/** Reports problems between the fields of a binding: scheme parameters, emit mechanism, body. */
export function checkBinding(value: unknown, context: z.core.$RefinementCtx): void {
  if (typeof value !== 'object' || value === null) return;
  const binding: Fields = { ...value };
  const report: Report = (field, message) => context.addIssue({ code: 'custom', path: [field], message });
  checkSchemeParameters(binding, report);
  checkKeySet(binding, report);
  checkEmit(binding, report);
  checkBody(binding, report);
  checkPorts(binding, report);
}

/** The message for unknown fields of a binding, each with its nearest known field. */
export function describeUnknownFields(keys: readonly string[], known: readonly string[]): string {
  const named = keys.map((key) => `"${key.slice(0, 64)}"${didYouMean(key, known)}`);
  return keys.length === 1 ? `unknown field ${named.join()}` : `unknown fields ${named.join(' ')}`;
}

function checkSchemeParameters(binding: Fields, report: Report): void {
  const scheme = INJECTION_SCHEMES.find((known) => known === binding['scheme']);
  if (scheme === undefined) return;
  const { required, optional } = SCHEME_PARAMETERS[scheme];
  for (const field of required) {
    if (binding[field] !== undefined) continue;
    report(field, `is missing: scheme "${scheme}" needs ${PARAMETER_FIX[field] ?? 'it'}`);
  }
  for (const other of INJECTION_SCHEMES) {
    for (const field of [...SCHEME_PARAMETERS[other].required, ...SCHEME_PARAMETERS[other].optional]) {
      if (binding[field] === undefined || required.includes(field) || optional.includes(field)) continue;
      report(field, `belongs to scheme "${other}", and the scheme is "${scheme}": remove it or change the scheme`);
    }
  }
}

/** A key set has its session token; another one would be of another mint. */
function checkKeySet(binding: Fields, report: Report): void {
  if (binding['access_key_id'] !== MINTED_KEY_ID || binding['session_token_ref'] === undefined) return;
  report('session_token_ref', `is part of the key set that is minted: remove it, or write the access key id`);
}

function checkEmit(binding: Fields, report: Report): void {
  const emit = binding['emit_mechanism'] ?? 'inject';
  const hasSentinel = binding['sentinel'] !== undefined;
  if (emit === 'sentinel-swap' && !hasSentinel) {
    report('sentinel', 'is missing: emit_mechanism "sentinel-swap" needs the stand-in that is swapped, {value, env?}');
  }
  if (emit === 'inject' && hasSentinel) {
    report('sentinel', 'belongs to emit_mechanism "sentinel-swap", and this one is "inject": remove it or change that');
  }
}

/** A signature covers a hash of the whole body, which therefore must be read first, except in S3's streaming forms. */
function checkBody(binding: Fields, report: Report): void {
  if (binding['scheme'] !== 'sigv4-resign' || binding['body'] !== 'stream') return;
  const service = binding['service'];
  if (typeof service !== 'string' || STREAMING_SERVICES.includes(service)) return;
  report(
    'body',
    `is "stream", but a signature for ${JSON.stringify(service.slice(0, 64))} covers the whole body: write "buffer"`,
  );
}

/** An allowed host at another port is one that the binding never applies to. */
function checkPorts({ host, allowed_hosts: allowed }: Fields, report: Report): void {
  if (typeof host !== 'string' || !Array.isArray(allowed)) return;
  const port = portOfHost(host);
  const other = allowed.find((each) => typeof each === 'string' && portOfHost(each) !== port);
  if (other === undefined) return;
  report('allowed_hosts', `has ${other}, at another port than host: write a binding for each port`);
}
