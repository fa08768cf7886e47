import { canonicalJson } from '../audit/canonical_json.ts';
import type { CredentialRef, Effect, HostBinding, Injection, InjectionScheme } from '../model/host_binding.ts';
import { covers } from '../net/host_pattern.ts';

/** How the output of a program is read. */
export type BorrowedForm =
  /** The whole output, without a line break at its end. */
  | { readonly form: 'text' }
  /** Fields of a JSON object, named by dots: `credential.access_token`. */
  | { readonly form: 'json'; readonly value: string; readonly expires?: string | undefined }
  /** A key set, as AWS's `credential_process` writes it. */
  | { readonly form: 'aws' };

/** A file whose content decides what the program does. */
export interface BorrowFile {
  readonly path: string;
  /** SHA-256 of its content, in hex; null if only the system's administrator can change it, as an update does. */
  readonly sha256: string | null;
}

/** What a person at a machine consents to: everything that decides what runs there, and where its value may go. */
export interface BorrowGrant extends CredentialRef {
  /** An absolute path. */
  readonly program: string;
  readonly args: readonly string[];
  /** Variables besides the fixed ones. */
  readonly env: Readonly<Record<string, string>>;
  readonly output: BorrowedForm;
  /** The program, and the arguments that are code. */
  readonly files: readonly BorrowFile[];
  /** Host patterns, as in a binding. */
  readonly hosts: readonly string[];
  readonly scheme: InjectionScheme;
  /**
   * The header, in lower case, or the query parameter that gets the value, for the two schemes that name one. With `sigv4-resign`:
   * {@link SESSION_TOKEN_HEADER} for a session token, and none for the key, which is only signed with.
   */
  readonly place?: string | undefined;
  /** `read`: only for bindings with that effect. Any other: for every binding. */
  readonly effect: Effect;
}

/** Where a session token of AWS is sent as it is. A presigned URL has it in the parameter of this name. */
export const SESSION_TOKEN_HEADER = 'x-amz-security-token';

/** What a request wants a value for. */
export interface CredentialUse {
  /** The request's own host, with its port if it is not 443. */
  readonly host: string;
  readonly scheme: InjectionScheme;
  /** The header, in lower case, or the query parameter; null where the scheme says it all. */
  readonly place: string | null;
  readonly effect: Effect | null;
}

/** The use of a binding's credential at a host that it covers. */
export function useOf({ injection, effect }: HostBinding, host: string): CredentialUse {
  return { host, scheme: injection.scheme, place: placeOf(injection), effect: effect ?? null };
}

/** The use of its session token. A consent to sign with a value is none to send it, so whoever changes the binding cannot name the key here. */
export function useOfSessionToken(binding: HostBinding, host: string): CredentialUse {
  return { ...useOf(binding, host), place: SESSION_TOKEN_HEADER };
}

function placeOf(injection: Injection): string | null {
  if (injection.scheme === 'header-template') return injection.header.toLowerCase();
  return injection.scheme === 'query-param' ? injection.queryParam : null;
}

/** What a scheme that sends a value to a named place calls it; null for the others. */
export function placeNameOf(scheme: InjectionScheme): 'header' | 'query parameter' | null {
  if (scheme === 'header-template' || scheme === 'sigv4-resign') return 'header';
  return scheme === 'query-param' ? 'query parameter' : null;
}

/** The text whose SHA-256 a consent is bound to. */
export function grantText(grant: BorrowGrant): string {
  const { owner, path, program, args, env, output, files, hosts, scheme, place, effect } = grant;
  const named = place === undefined ? {} : { place };
  return canonicalJson({ owner, path, program, args, env, output, files, hosts, scheme, effect, ...named });
}

/** Why a grant does not cover a use, as the end of a sentence; null if it does. */
export function findUncovered(grant: BorrowGrant, use: CredentialUse): string | null {
  if (!grant.hosts.some((pattern) => covers(pattern, use.host))) {
    return `is for ${grant.hosts.join(', ')}, not for ${use.host}`;
  }
  if (use.scheme !== grant.scheme) return `is for the scheme ${grant.scheme}, not for ${use.scheme}`;
  if (use.place !== (grant.place ?? null)) {
    const name = placeNameOf(use.scheme) ?? 'place';
    if (grant.place === undefined) return `names no ${name}, and this binding writes to the ${name} ${use.place}`;
    return `is for the ${name} ${grant.place}${use.place === null ? ' alone' : `, not for ${use.place}`}`;
  }
  if (grant.effect === 'read' && use.effect !== 'read') {
    return `is for bindings with the effect read, and this one has ${use.effect ?? 'none'}`;
  }
  return null;
}
