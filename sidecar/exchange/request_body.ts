import type { Limits } from '../../shared/model/limits.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import type { Result } from '../../shared/model/result.ts';
import { err, ok } from '../../shared/model/result.ts';
import type { BodyFraming } from '../../shared/net/http/http1_framing.ts';
import type { ReplyHead } from '../../shared/net/http/http1_head.ts';
import { fieldValues } from '../../shared/net/http/http1_head.ts';
import type { BufferedBody } from './body.ts';
import { bufferBody, refuseDeclared } from './body.ts';
import type { ExchangePorts, ExchangeTunnel } from './exchange_ports.ts';
import type { Incoming } from './incoming.ts';

export interface RequestBody {
  /** Null if the body is streamed, or if there is none. */
  readonly buffered: BufferedBody | null;
}

/** The result for a body that is not read in advance. */
export const NOT_BUFFERED = ok<RequestBody>({ buffered: null });

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n', 'latin1');
const CONTINUE_HEAD: ReplyHead = {
  version: '1.1',
  status: 100,
  reason: 'Continue',
  startLine: 'HTTP/1.1 100 Continue',
  fields: [],
};

/** The size limit of a body, and the fix to name when it is exceeded. */
const BODY_LIMITS = {
  credentialed: {
    limit: 'maxCredentialedBodyBytes',
    advice: 'raise SVC_MAX_CREDENTIALED_BODY_BYTES, or set `body: stream` on its host binding',
  },
  audited: {
    limit: 'maxReadBodyBytes',
    advice: 'the audit log names inputs in the body of this operation: raise SVC_MAX_READ_BODY_BYTES',
  },
  graphql: {
    limit: 'maxGraphqlBodyBytes',
    advice: 'the body of a GraphQL request is parsed: raise SVC_MAX_GRAPHQL_BODY_BYTES, or send less at a time',
  },
  json: {
    limit: 'maxReadBodyBytes',
    advice: 'the body decides which operation the request is: raise SVC_MAX_READ_BODY_BYTES',
  },
} as const satisfies Record<string, { readonly limit: keyof Limits; readonly advice: string }>;

/** Reads a request's whole body. Refuses with `body_too_large`, or with `invalid_request` if it is broken or stalls. */
export async function readBody(
  incoming: Incoming,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
  kind: keyof typeof BODY_LIMITS = 'credentialed',
): Promise<Result<RequestBody, Refusal>> {
  const { limit, advice } = BODY_LIMITS[kind];
  const maxBytes = Math.min(ports.limits[limit], ports.limits.maxCredentialedBodyBytes);
  const limits = { maxBytes, advice, budget: ports.budget, sessionId: tunnel.sessionId };
  const declared = refuseDeclared(declaredFraming(incoming), limits);
  if (declared !== null) return err(declared);
  if (expectsContinue(incoming)) await tunnel.sendInterim(CONTINUE, CONTINUE_HEAD);
  const buffered = await bufferBody(tunnel.client, incoming.framing, limits);
  return buffered.ok ? ok({ buffered: buffered.value }) : buffered;
}

/** In HTTP/2 the length frames nothing, but it is what the client means to send. */
function declaredFraming({ head, framing }: Incoming): BodyFraming {
  const length = head.version === '2' ? Number(fieldValues(head.fields, 'content-length')[0] ?? 0) : 0;
  return length > 0 ? { kind: 'length', length } : framing;
}

/** The buffered body as latin1 text; empty if none was read. */
export function bodyText({ buffered }: RequestBody): string {
  return buffered === null ? '' : Buffer.concat(buffered.chunks).toString('latin1');
}

function expectsContinue({ head }: Incoming): boolean {
  if (head.version === '1.0') return false;
  return head.fields.some((field) => field.name === 'expect' && field.value.toLowerCase() === '100-continue');
}
