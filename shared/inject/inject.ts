import type { HostBinding } from '../model/host_binding.ts';
import { refusal } from '../model/refusal.ts';
import type { Refusal } from '../model/refusal.ts';
import { err } from '../model/result.ts';
import type { Result } from '../model/result.ts';
import type { Secret } from '../model/secret.ts';
import { connectionTokens } from '../net/http/http1_head.ts';
import type { HashPort, InjectedRequest, OutgoingRequest, PayloadBody } from './outgoing_request.ts';
import { findPresentedCredential } from './find_presented.ts';
import { adapterOf } from './schemes.ts';

interface InjectInput {
  readonly binding: Pick<HostBinding, 'injection' | 'emit'>;
  readonly request: OutgoingRequest;
  readonly credential: Secret;
  readonly sessionToken?: Secret;
  /** In place of the binding's: that of the key set to which the credential belongs. */
  readonly accessKeyId?: string;
  readonly body: PayloadBody;
  readonly now: Date;
  readonly hash: HashPort;
}

/**
 * Writes the credential in the place of the binding's scheme and removes every copy that the client sent there; with
 * `sentinel-swap`, swaps a sentinel in place. Call it only if `emitDecision` said `write`. Synchronous for every scheme but
 * `sigv4-resign`.
 *
 * Refuses with `credential_unavailable` (the stored value cannot be sent), `invalid_request` (the request has no place for
 * it) and `signing_form_unsupported`.
 */
export function inject(
  input: InjectInput,
): Result<InjectedRequest, Refusal> | Promise<Result<InjectedRequest, Refusal>> {
  const { binding, request } = input;
  const adapter = adapterOf(binding.injection);
  const place = adapter.placeHeader(binding.injection);
  if (place !== null && connectionTokens(request.fields).has(place)) return err(NOMINATED_AWAY);
  const credential = input.credential.reveal();
  const sessionToken = input.sessionToken?.reveal() ?? null;
  const problem = findUnsendable(credential) ?? (sessionToken === null ? null : findUnsendable(sessionToken));
  if (problem !== null) return err(refusal('credential_unavailable', problem));
  const { body, now, hash } = input;
  return adapter.write(binding.injection, {
    request,
    credential,
    sessionToken,
    accessKeyId: input.accessKeyId ?? null,
    sentinel: findPresentedSentinel(binding, request),
    body,
    now,
    hash,
  });
}

/** A hop would drop the credential's header, so the request is refused. */
const NOMINATED_AWAY = refusal(
  'invalid_request',
  'The Connection header names the header that carries the credential: send the request without that name in Connection.',
);

function findPresentedSentinel(binding: InjectInput['binding'], request: OutgoingRequest): string | null {
  if (binding.emit.mechanism !== 'sentinel-swap') return null;
  return findPresentedCredential(binding, request) === 'sentinel' ? binding.emit.sentinel : null;
}

/** Why a stored value cannot be sent in any scheme: a line break in it could start another header. */
function findUnsendable(value: string): string | null {
  if (value === '') return 'The stored credential is empty: store its value again.';
  if (!CONTROL_CHARACTER.test(value)) return null;
  return 'The stored credential contains a character that cannot be sent (a line break or another control character): store the value again without it.';
}

const CONTROL_CHARACTER = /[\p{Cc}]/u;
