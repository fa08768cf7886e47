import type { ForwardedMediation } from '../../shared/audit/exchange_event.ts';
import { inject } from '../../shared/inject/inject.ts';
import type { InjectedRequest, OutgoingRequest, PayloadBody } from '../../shared/inject/outgoing_request.ts';
import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { ok } from '../../shared/model/result.ts';
import type { ReplyHead, RequestHead } from '../../shared/net/http/http1_head.ts';
import type { PresentedCertificate } from '../ports.ts';
import type { BufferedBody } from './body.ts';
import { isWebSocketUpgrade, reframe } from './prepare_request.ts';
import {
  bothInForce,
  mayHaveCertificate,
  NO_CERTIFICATE,
  refusedCertificate,
  takeCertificate,
  withCertificateFacts,
} from './client_certificate.ts';
import { type ExchangePorts, type ExchangeTunnel, credentialsFor } from './exchange_ports.ts';
import type { ForwardContext, Outgoing } from './outgoing.ts';
import { forward } from './forward.ts';
import { type InForce, untilEnd } from './in_force.ts';
import type { Incoming } from './incoming.ts';
import { mayBindConnection } from './may_bind_connection.ts';
import type { CredentialMaterial } from './material.ts';
import { resolveMaterial } from './material.ts';
import type { Facts, Outcome } from './outcome.ts';
import { abandon, keepsCookies, refuse, replyWith } from './outcome.ts';
import type { RequestBody } from './request_body.ts';
import { listWithheldHeaders, sanitiseHead } from './sanitise_head.ts';
import { scrubHead, scrubHeadBytes } from './scrub_head.ts';

/** The lane of requests without a credential. */
export const PASSTHROUGH_LANE = '';

/** A request that is allowed to have its credential. */
interface Admitted {
  readonly incoming: Incoming;
  readonly request: OutgoingRequest;
  readonly binding: HostBinding;
  /** Checked once the credential is there and again once the upstream is connected, because the request may have waited long. */
  readonly inForce: InForce;
  readonly body: RequestBody;
  readonly facts: Facts;
  readonly mediation: ForwardedMediation;
}

/** The last stages of every credentialed request: credential, inject, forward. */
export async function sendCredentialed(
  admitted: Admitted,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const { incoming, body, facts, mediation } = admitted;
  const wasRead = body.buffered !== null;
  const paused = ports.masked.refuse(tunnel.sessionId, admitted.binding.id);
  if (paused !== null) return refuse(facts, paused, incoming, wasRead);
  const overLimit = ports.counts.take(admitted.binding, tunnel.sessionId);
  if (overLimit !== null) return refuse(facts, overLimit, incoming, wasRead);
  const credentials = credentialsFor(ports, tunnel.credentialsId);
  const resolved = resolveMaterial(admitted.binding, tunnel.host, credentials, ports.materials);
  const material = resolved instanceof Promise ? await resolved : resolved;
  if (!material.ok) return refuse(facts, material.error, incoming, wasRead);
  const lapsed = admitted.inForce();
  if (lapsed !== null) return refuse(facts, lapsed, incoming, wasRead);
  const taken = mayHaveCertificate(tunnel, ports)
    ? await takeCertificate({ head: incoming.head, isOperation: mediation === 'connector' }, tunnel, ports)
    : NO_CERTIFICATE;
  if (!taken.ok) return refuse({ ...facts, ...refusedCertificate(tunnel, ports) }, taken.error, incoming, wasRead);
  const certificate = taken.value;
  const certified = withCertificateFacts(facts, certificate);
  const inForce = bothInForce(admitted.inForce, certificate);
  const written = injectCredential(admitted, material.value, certificate, ports);
  const outgoing = written instanceof Promise ? await written : written;
  if (!outgoing.ok) return refuse(facts, outgoing.error, incoming, wasRead);
  const { scrub, hasEnded } = material.value;
  const keepCookies = keepsCookies(facts);
  const telling = { scrub, keepCookies, lane: outgoing.value.lane };
  const context = forwardContext(incoming, tunnel, ports, telling);
  const meter = ports.counts.meter(admitted.binding, tunnel.sessionId);
  if (body.buffered !== null) meter?.add(body.buffered.bytes);
  const reply = await forward(outgoing.value, { ...context, inForce: untilEnd(inForce, hasEnded, tunnel.host), meter });
  if (reply.ok) {
    if (mayBindConnection(incoming.head.fields, reply.value.head)) tunnel.lanes.keepToTunnel(reply.value.lane);
    const shown = { ...reply.value, ...sanitiseHead(reply.value, keepCookies) };
    const held = listWithheldHeaders(reply.value.head.fields, keepCookies);
    return { ...replyWith(incoming, certified, mediation, shown, scrub), withheldHeaders: held, inForce, meter };
  }
  return tunnel.client.closed ? abandon(certified) : refuse(certified, reply.error, incoming, wasRead);
}

/** The outgoing request with the credential written onto it. Synchronous if the scheme is. */
function injectCredential(
  admitted: Admitted,
  { credential, sessionToken, accessKeyId, scrub }: CredentialMaterial,
  certificate: PresentedCertificate | null,
  { clock, hash }: ExchangePorts,
): Result<Outgoing, Refusal> | Promise<Result<Outgoing, Refusal>> {
  const { request, incoming, binding } = admitted;
  const { buffered } = admitted.body;
  const framed = buffered === null ? request : { ...request, fields: reframe(request.fields, buffered.bytes) };
  const body = payloadOf(incoming, buffered);
  const session = { ...(sessionToken !== null && { sessionToken }), ...(accessKeyId !== null && { accessKeyId }) };
  const input = { binding, request: framed, credential, ...session, body, now: new Date(clock.now()), hash };
  const done = inject(input);
  // Beside a session token, the patterns stand for the pair.
  const released = sessionToken === null ? credential : scrub;
  const finish = (written: Result<InjectedRequest, Refusal>): Result<Outgoing, Refusal> =>
    written.ok ? ok({ ...outgoingOf(written.value, framed, admitted), credential: released, certificate }) : written;
  return done instanceof Promise ? done.then(finish) : finish(done);
}

function outgoingOf(
  { method, target, fields, bodyTransform }: InjectedRequest,
  before: OutgoingRequest,
  { incoming, binding, body: { buffered } }: Admitted,
): Omit<Outgoing, 'credential'> {
  const head = { ...incoming.head, method, target, fields };
  return {
    head: head.version === '2' ? withSecretsUnindexed(head, before) : head,
    raw: null,
    body:
      buffered === null
        ? { kind: 'stream', framing: incoming.framing, transform: bodyTransform ?? null }
        : { kind: 'bytes', chunks: buffered.chunks },
    upgrade: isWebSocketUpgrade(incoming.head) ? 'websocket' : 'none',
    lane: binding.id,
  };
}

/** What injection has written or changed is never indexed, so that it is in no compression table (RFC 7541 section 7.1.3). */
function withSecretsUnindexed(head: RequestHead, before: OutgoingRequest): RequestHead {
  const known = new Set(before.fields);
  const written = head.fields.filter((field) => !known.has(field)).map(({ name }) => name);
  const target = head.target === before.target ? [] : [':path'];
  return { ...head, neverIndexed: [...(head.neverIndexed ?? []), ...written, ...target] };
}

function payloadOf(incoming: Incoming, buffered: BufferedBody | null): PayloadBody {
  if (buffered !== null) return { kind: 'bytes', chunks: buffered.chunks };
  return incoming.framing.kind === 'none' ? { kind: 'none' } : { kind: 'stream' };
}

/** How the replies to a credentialed request are masked and filtered on their way to the client. */
interface Telling {
  readonly scrub: ScrubPatterns;
  readonly keepCookies: boolean;
  readonly lane: string;
}

/**
 * HTTP/1.0 has no interim replies (RFC 9110 section 15.2). On a credentialed path interim replies are masked like the final
 * one; on passthrough `telling` is null.
 */
export function forwardContext(
  incoming: Incoming,
  tunnel: ExchangeTunnel,
  { limits }: ExchangePorts,
  telling: Telling | null,
): Omit<ForwardContext, 'inForce'> {
  const { client, lanes } = tunnel;
  const { maxHeadBytes, maxHeaders } = limits;
  const onInterim = (received: Buffer, told: ReplyHead): Promise<void> => {
    if (telling === null) return tunnel.sendInterim(received, told);
    const { head, raw } = sanitiseHead({ head: told, raw: received }, telling.keepCookies);
    const scrubbed = scrubHeadBytes(head, raw, telling.scrub);
    if (scrubbed !== raw) tunnel.noteMasked(telling.lane);
    return tunnel.sendInterim(scrubbed, scrubbed === raw ? head : scrubHead(head, telling.scrub));
  };
  return {
    client,
    lanes,
    host: tunnel.host,
    maxHeadBytes,
    maxHeaders,
    onInterim: incoming.head.version === '1.0' ? null : onInterim,
  };
}
