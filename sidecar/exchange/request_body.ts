import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { BufferedBody } from './body.ts';
import { bufferBody, refuseDeclared } from './body.ts';
import type { ExchangePorts, ExchangeTunnel } from './exchange_ports.ts';
import type { Incoming } from './incoming.ts';

export interface RequestBody {
  /** Null when the body passes as it comes, or there is none. */
  readonly buffered: BufferedBody | null;
}

/** The body of a request that is not read before it goes on. */
export const NOT_BUFFERED = ok<RequestBody>({ buffered: null });

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n', 'latin1');

/**
 * Reads the body of a request in full; one that is looked into, for what its operation audits, has a smaller limit. Refuses with `body_too_large`, or
 * `invalid_request` when it is broken or stalls.
 */
export async function readBody(
  incoming: Incoming,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
  isLookedAt = false,
): Promise<Result<RequestBody, Refusal>> {
  const { maxCredentialedBodyBytes, maxReadBodyBytes } = ports.limits;
  const maxBytes = isLookedAt ? Math.min(maxReadBodyBytes, maxCredentialedBodyBytes) : maxCredentialedBodyBytes;
  const limits = { maxBytes, isLookedAt, budget: ports.budget, sessionId: tunnel.sessionId };
  const declared = refuseDeclared(incoming.framing, limits);
  if (declared !== null) return err(declared);
  if (expectsContinue(incoming)) await tunnel.sendInterim(CONTINUE);
  const buffered = await bufferBody(tunnel.client, incoming.framing, limits);
  return buffered.ok ? ok({ buffered: buffered.value }) : buffered;
}

function expectsContinue({ head }: Incoming): boolean {
  if (head.version === '1.0') return false;
  return head.fields.some((field) => field.name === 'expect' && field.value.toLowerCase() === '100-continue');
}
