import { chooseBinding } from '../../shared/inject/choose.ts';
import { emitDecision } from '../../shared/inject/decide.ts';
import { needsBufferedBody } from '../../shared/inject/body_need.ts';
import type { HashPort, InjectedRequest, OutgoingRequest, PayloadBody } from '../../shared/inject/outgoing_request.ts';
import { inject } from '../../shared/inject/inject.ts';
import type { ScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { enforceContract } from '../../shared/enforce/contract.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { Limits } from '../../shared/model/limits.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import { connectionTokens, formatRequestHead } from '../../shared/net/http1_head.ts';
import type { ReplyHead } from '../../shared/net/http1_head.ts';
import { isRefusedIpLiteral } from '../../shared/net/ip_literal.ts';
import { resolve } from '../../shared/resolve/resolve.ts';
import type { Connection } from '../connection/connection.ts';
import type { AuditSink, Clock, CredentialSource, PolicySource, UpstreamLanes } from '../ports.ts';
import type { BodyBudget, BufferedBody } from './body.ts';
import { bufferBody, refuseDeclared } from './body.ts';
import { credentialedRequest, isWebSocketUpgrade, reframed, withoutProxyHeaders } from './credentialed_head.ts';
import type { ForwardContext, Outgoing, Reply } from './forward.ts';
import { forward } from './forward.ts';
import type { Incoming } from './incoming.ts';
import { checkAuthority, parseIncoming } from './incoming.ts';
import type { Facts, Mediation, Outcome } from './outcome.ts';
import type { CredentialMaterial, MaterialCache } from './material.ts';
import { resolveMaterial } from './material.ts';
import { scrubbedBytes } from './scrubbed_head.ts';

/** What an exchange works with; all of it is replaceable in a test. */
export interface ExchangePorts {
  readonly policy: PolicySource;
  readonly credentials: CredentialSource;
  readonly audit: Pick<AuditSink, 'accepting' | 'exhausted'>;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly budget: BodyBudget;
  readonly materials: MaterialCache;
  readonly hash: HashPort;
}

/** The tunnel a request came through: the host it was opened for is the request's authority. */
export interface ExchangeTunnel {
  readonly host: string;
  /** The TLS server name the client asked for, when it sent one. */
  readonly sni: string | null;
  readonly client: Connection;
  readonly lanes: UpstreamLanes;
  /** Sends an interim reply (1xx) to the client; resolves when there is room for more. */
  sendInterim(raw: Buffer): Promise<void>;
}

/** The lane of requests that get no credential. */
const PASSTHROUGH_LANE = '';
const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n', 'latin1');

/**
 * Decides what happens to one decrypted request and forwards it (specification section 1, Request resolution order):
 * parse -> resolve -> enforce -> body -> credential -> inject -> forward -> Outcome. It writes nothing to the client;
 * its one caller answers and records.
 */
export async function exchange(raw: Buffer, tunnel: ExchangeTunnel, ports: ExchangePorts): Promise<Outcome> {
  const parsed = parseIncoming(raw, tunnel.host, ports.limits.maxHeaders);
  if (!parsed.ok) return refused(unread(tunnel), parsed.error);
  const incoming = parsed.value;
  const facts = factsOf(incoming, tunnel.host);

  if (ports.audit.exhausted) return refused(facts, auditUnavailable(), incoming);
  const policy = ports.policy.current();
  if (!policy.ok) return refused(facts, policy.error, incoming);
  const resolution = resolve(policy.value, {
    method: incoming.head.method,
    host: tunnel.host,
    path: incoming.target.path,
  });
  if (resolution.kind === 'passthrough') return passthrough(incoming, facts, tunnel, ports);

  const authority = checkAuthority(incoming, tunnel.host, tunnel.sni);
  if (!authority.ok) return refused(facts, authority.error, incoming);
  return bound(incoming, resolution.bindings, facts, tunnel, ports);
}

/** The binding path: the contract first, then the body, and only then the credential. */
async function bound(
  incoming: Incoming,
  bindings: readonly HostBinding[],
  unbound: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const request = credentialedRequest(incoming, tunnel.host);
  const choice = chooseBinding(bindings, request);
  const binding = choice?.binding ?? bindings[0];
  if (binding === undefined) throw new Error('a resolution to a binding names at least one');
  const facts: Facts = { host: unbound.host, method: unbound.method, path: unbound.path, binding };

  const contract = enforceContract(binding, {
    host: tunnel.host,
    method: request.method,
    fields: incoming.head.fields,
  });
  if (!contract.ok) return refused(facts, contract.error, incoming);
  if (choice === null || emitDecision(binding, choice.presented) === 'keep_foreign') {
    return forwardAsIs(incoming, 'foreign', facts, tunnel, ports);
  }
  if (!ports.audit.accepting) return refused(facts, auditUnavailable(), incoming);

  const inFull = incoming.framing.kind !== 'none' && needsBufferedBody(binding, request);
  const body = inFull ? await readBody(incoming, tunnel, ports) : NOT_BUFFERED;
  if (!body.ok) return tunnel.client.closed ? abandoned(facts) : refused(facts, body.error);
  try {
    const resolved = resolveMaterial(binding, ports.credentials, ports.materials);
    const material = resolved instanceof Promise ? await resolved : resolved;
    if (!material.ok) return refused(facts, material.error, incoming, body.value.buffered !== null);
    const written = injected(request, incoming, binding, material.value, body.value, ports);
    const outgoing = written instanceof Promise ? await written : written;
    if (!outgoing.ok) return refused(facts, outgoing.error, incoming, body.value.buffered !== null);
    const reply = await forward(outgoing.value, forwardContext(incoming, tunnel, ports, material.value.scrub));
    if (reply.ok) return replied(incoming, facts, 'binding', reply.value, material.value.scrub);
    return tunnel.client.closed
      ? abandoned(facts)
      : refused(facts, reply.error, incoming, body.value.buffered !== null);
  } finally {
    body.value.buffered?.release();
  }
}

interface RequestBody {
  /** Null when the body passes as it comes. */
  readonly buffered: BufferedBody | null;
}

const NOT_BUFFERED = ok<RequestBody>({ buffered: null });

async function readBody(
  incoming: Incoming,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Result<RequestBody, Refusal>> {
  const limits = { maxBytes: ports.limits.maxCredentialedBodyBytes, budget: ports.budget };
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

/** The request as it goes out, with the credential written onto it. Answers at once where the scheme does. */
function injected(
  request: OutgoingRequest,
  incoming: Incoming,
  binding: HostBinding,
  { credential, sessionToken }: CredentialMaterial,
  { buffered }: RequestBody,
  { clock, hash }: ExchangePorts,
): Result<Outgoing, Refusal> | Promise<Result<Outgoing, Refusal>> {
  const framed = buffered === null ? request : { ...request, fields: reframed(request.fields, buffered.bytes) };
  const body = payloadOf(incoming, buffered);
  const input = { binding, request: framed, credential, body, now: new Date(clock.now()), hash };
  const done = inject(sessionToken === null ? input : { ...input, sessionToken });
  const finish = (written: Result<InjectedRequest, Refusal>): Result<Outgoing, Refusal> =>
    written.ok ? ok(outgoingOf(written.value, incoming, binding, buffered)) : written;
  return done instanceof Promise ? done.then(finish) : finish(done);
}

function outgoingOf(
  { method, target, fields, bodyTransform }: InjectedRequest,
  incoming: Incoming,
  binding: HostBinding,
  buffered: BufferedBody | null,
): Outgoing {
  return {
    head: formatRequestHead({ method, target, fields, version: incoming.head.version }),
    method,
    body:
      buffered === null
        ? { kind: 'stream', framing: incoming.framing, transform: bodyTransform ?? null }
        : { kind: 'bytes', chunks: buffered.chunks },
    upgrade: isWebSocketUpgrade(incoming.head),
    lane: binding.id,
  };
}

function payloadOf(incoming: Incoming, buffered: BufferedBody | null): PayloadBody {
  if (buffered !== null) return { kind: 'bytes', chunks: buffered.chunks };
  return incoming.framing.kind === 'none' ? { kind: 'none' } : { kind: 'stream' };
}

/** The passthrough path: refused IP literals aside, the request goes on as it came and no credential is looked up. */
function passthrough(
  incoming: Incoming,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> | Outcome {
  if (isRefusedIpLiteral(tunnel.host)) {
    const message = `${tunnel.host} is an address of a private range; use a host name, or bind the host`;
    return refused(facts, refusal('passthrough_target_not_allowed', message), incoming);
  }
  return forwardAsIs(incoming, 'passthrough', facts, tunnel, ports);
}

async function forwardAsIs(
  incoming: Incoming,
  mediation: Mediation,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const rewritten = withoutProxyHeaders(incoming.head);
  const outgoing: Outgoing = {
    head: rewritten === null ? incoming.raw : formatRequestHead(rewritten),
    method: incoming.head.method,
    body: { kind: 'stream', framing: incoming.framing, transform: null },
    upgrade: incoming.head.fields.some((field) => field.name === 'upgrade'),
    lane: PASSTHROUGH_LANE,
  };
  const reply = await forward(outgoing, forwardContext(incoming, tunnel, ports, null));
  if (reply.ok) return replied(incoming, facts, mediation, reply.value, null);
  return tunnel.client.closed ? abandoned(facts) : refused(facts, reply.error, incoming);
}

/** HTTP/1.0 knows no interim replies (RFC 9110 section 15.2). On a credentialed path they are scrubbed as the last one is. */
function forwardContext(
  incoming: Incoming,
  tunnel: ExchangeTunnel,
  { limits }: ExchangePorts,
  scrub: ScrubPatterns | null,
): ForwardContext {
  const { client, lanes } = tunnel;
  const { maxHeadBytes, maxHeaders } = limits;
  const onInterim = (raw: Buffer, head: ReplyHead): Promise<void> =>
    tunnel.sendInterim(scrub === null ? raw : scrubbedBytes(head, raw, scrub));
  return { client, lanes, maxHeadBytes, maxHeaders, onInterim: incoming.head.version === '1.0' ? null : onInterim };
}

function abandoned(facts: Facts): Outcome {
  return { kind: 'abandoned', facts };
}

function factsOf(incoming: Incoming, host: string): Facts {
  return { host, method: incoming.head.method, path: incoming.target.path, binding: null };
}

function unread({ host }: ExchangeTunnel): Facts {
  return { host, method: null, path: null, binding: null };
}

function replied(
  incoming: Incoming,
  facts: Facts,
  mediation: Mediation,
  reply: Reply,
  scrub: ScrubPatterns | null,
): Outcome {
  const { version } = incoming.head;
  return { kind: 'replied', facts, mediation, reply, version, staysOpen: isPersistent(incoming), scrub };
}

/** A refusal; without `incoming` the rest of the request is unknown, and the tunnel can't go on. */
function refused(facts: Facts, why: Refusal, incoming?: Incoming, bodyWasRead = false): Outcome {
  const staysOpen =
    incoming !== undefined && (bodyWasRead || incoming.framing.kind === 'none') && isPersistent(incoming);
  return { kind: 'refused', facts, refusal: why, staysOpen };
}

/** Whether the client keeps its connection (RFC 9112 section 9.3). */
function isPersistent({ head }: Incoming): boolean {
  const tokens = connectionTokens(head.fields);
  return head.version === '1.1' ? !tokens.has('close') : tokens.has('keep-alive');
}

function auditUnavailable(): Refusal {
  return refusal('audit_unavailable', 'the audit spool is full or cannot be written; see `svc doctor`');
}
