import { err, ok } from '../../shared/model/result.ts';
import {
  CALL_LIMITS,
  carryHeaders,
  type Outbound,
  type OutboundRequest,
  readBody,
  targetProblem,
  unreachableHost,
} from './outbound.ts';

/**
 * Outgoing calls by the runtime's `fetch`, for workerd, which resolves names itself. Refuses addresses and names
 * without a dot. A worker cannot see its network, so the platform must guard what other names resolve to.
 */
export function fetchOutbound(isLocal: boolean): Outbound {
  return {
    async call(request) {
      const url = new URL(request.url);
      const problem = targetProblem(url, isLocal && request.isStrangers !== true, request);
      if (problem !== null) return err(problem);
      try {
        return await callOnce(url, request);
      } catch (error) {
        // Runtimes throw different errors when there is no reply. Their messages may hold the whole URL, so they are
        // not used.
        const timedOut = error instanceof Error && error.name === 'TimeoutError';
        return err(unreachableHost(url.hostname, timedOut ? 'no answer in time' : 'the call failed'));
      }
    },
  };
}

async function callOnce(url: URL, request: OutboundRequest) {
  const { maxReplyBytes, timeoutMs } = request.limits ?? CALL_LIMITS;
  const reply = await fetch(url, {
    method: request.method,
    headers: { ...request.headers, 'accept-encoding': 'identity' },
    body: request.body,
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
  });
  const contentType = reply.headers.get('content-type') ?? '';
  const head = { status: reply.status, contentType, ...carryHeaders((name) => reply.headers.get(name)) };
  if (reply.body === null) return ok({ ...head, body: new Uint8Array() });
  const body = await readBody(url.hostname, reply.body, maxReplyBytes);
  return body.ok ? ok({ ...head, body: body.value }) : body;
}
