import type { OperationRequestParts } from '../../shared/connect/operation_request.ts';
import type { SanitisedReply } from '../../shared/connect/sanitised_reply.ts';
import { inject } from '../../shared/inject/inject.ts';
import type { OutgoingRequest } from '../../shared/inject/outgoing_request.ts';
import { scrubText } from '../../shared/inject/scrub/scrub_text.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { RequestHead } from '../../shared/net/http/http1_head.ts';
import { fieldValues, headerField } from '../../shared/net/http/http1_head.ts';
import type { Outgoing } from '../exchange/outgoing.ts';
import { forward } from '../exchange/forward.ts';
import type { InForce } from '../exchange/in_force.ts';
import type { CredentialMaterial } from '../exchange/material.ts';
import type { PresentedCertificate, UpstreamLanes } from '../ports.ts';
import type { RunPorts, RunRefusal } from './run_ports.ts';
import { readWholeBody } from './whole_body.ts';

const MOST_TYPE_CHARACTERS = 200;

/** A request that is allowed to have its credential. */
interface AdmittedRun {
  readonly parts: OperationRequestParts;
  readonly binding: HostBinding;
  readonly material: CredentialMaterial;
  readonly inForce: InForce;
  readonly certificate: PresentedCertificate | null;
}

/**
 * Sends an operation's request with its credential over a new connection to the host, and reads the whole reply. A redirect
 * is returned like any other reply. Refuses with the `upstream_` codes, or with `credential_unavailable` if the value cannot
 * be sent. Calls `onMasked` if the reply contained the credential.
 */
export async function callUpstream(
  admitted: AdmittedRun,
  gone: AbortSignal,
  onMasked: () => void,
  ports: RunPorts,
): Promise<Result<SanitisedReply, RunRefusal>> {
  const outgoing = await outgoingOf(admitted, ports);
  if (!outgoing.ok) return outgoing;
  // The connector's spec names the host, so a private address is allowed for every caller.
  const lanes = ports.openLanes(admitted.parts.host, () => false);
  const callMs = ports.exchange.limits.runTimeoutSeconds * 1000;
  const late = AbortSignal.timeout(callMs);
  const stop = AbortSignal.any([gone, late]);
  stop.addEventListener('abort', () => lanes.close());
  try {
    const reply = stop.aborted ? cutOff() : await forwardOnce(outgoing.value, admitted, lanes, { ports, onMasked });
    return !reply.ok && late.aborted ? refuseTooLate(admitted.parts.host, callMs) : reply;
  } finally {
    lanes.close();
  }
}

async function forwardOnce(
  outgoing: Outgoing,
  { parts: { host }, material: { scrub }, inForce }: AdmittedRun,
  lanes: UpstreamLanes,
  { ports: { exchange }, onMasked }: { readonly ports: RunPorts; readonly onMasked: () => void },
): Promise<Result<SanitisedReply, RunRefusal>> {
  const { maxHeadBytes, maxHeaders } = exchange.limits;
  const reply = await forward(outgoing, {
    client: null,
    lanes,
    host,
    maxHeadBytes,
    maxHeaders,
    onInterim: null,
    inForce,
  });
  if (!reply.ok) return reply;
  const { head } = reply.value;
  const body = await readWholeBody(reply.value, scrub, exchange);
  if (!body.ok) return body;
  if (body.value.masked) onMasked();
  const contentType = scrubText(fieldValues(head.fields, 'content-type')[0] ?? '', scrub);
  return ok({
    upstreamStatus: head.status,
    contentType: contentType.slice(0, MOST_TYPE_CHARACTERS),
    body: body.value.body,
  });
}

async function outgoingOf(
  { parts, binding, material, certificate }: AdmittedRun,
  { exchange: { clock, hash } }: RunPorts,
): Promise<Result<Outgoing, RunRefusal>> {
  const bytes = parts.body === null ? null : Buffer.from(parts.body, 'utf8');
  const request = requestOf(parts, bytes);
  const chunks = bytes === null ? [] : [bytes];
  const body = { kind: 'bytes', chunks } as const;
  const now = new Date(clock.now());
  const written = await inject({ binding, request, credential: material.credential, body, now, hash });
  if (!written.ok) return written;
  const { method, target, fields } = written.value;
  const head: RequestHead = { method, target, fields, version: '1.1' };
  return ok({ head, raw: null, body, upgrade: 'none', lane: binding.id, credential: material.credential, certificate });
}

/** The same request as the control plane's own runs send; they ask for no content coding. */
function requestOf({ method, host, path, query, body }: OperationRequestParts, bytes: Buffer | null): OutgoingRequest {
  const fields = [headerField('Host', host), headerField('Accept', '*/*'), headerField('User-Agent', 'svc')];
  if (body !== null) fields.push(headerField('Content-Type', 'application/json'));
  if (bytes !== null) fields.push(headerField('Content-Length', String(bytes.length)));
  return { method, target: query === null ? path : `${path}?${query}`, host, fields };
}

function cutOff(): Result<never, RunRefusal> {
  return err({ reason: 'upstream_unreachable', message: 'the caller disconnected before the request was sent' });
}

function refuseTooLate(host: string, callMs: number): Result<never, RunRefusal> {
  const message = `${host} did not send its whole reply within ${callMs / 1000} s`;
  return err({ reason: 'upstream_unreachable', message });
}
