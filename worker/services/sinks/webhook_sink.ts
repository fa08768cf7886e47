import { fromBase64Url, toBase64 } from '../../kernel/encoding.ts';
import type { Batch, HttpSinkKind } from './sink_kind.ts';
import type { SinkTarget } from './sink_target.ts';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** Signed webhooks by the rules of Standard Webhooks (`v1` signatures, HMAC-SHA256). */
export const webhookSink: HttpSinkKind = {
  isSigned: true,
  isAlert: false,
  async write(target, batch) {
    const body = new TextEncoder().encode(JSON.stringify(payloadOf(batch)));
    return { headers: { 'content-type': 'application/json', ...(await webhookHeaders(target, batch, body)) }, body };
  },
};

/** The timestamp is that of the first event, so that a batch that is sent again has the same bytes. */
function payloadOf({ enterpriseId, events }: Batch) {
  return {
    type: 'audit.events',
    timestamp: events[0]?.received_at ?? null,
    data: { enterprise_id: enterpriseId, events },
  };
}

/** The three headers; after a rotation there is a signature by each of two secrets. */
export async function webhookHeaders(
  { signing, previous }: Pick<SinkTarget, 'signing' | 'previous'>,
  { id, nowMs }: Pick<Batch, 'id' | 'nowMs'>,
  body: Uint8Array<ArrayBuffer>,
): Promise<Readonly<Record<string, string>>> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const secrets = [signing, previous !== undefined && nowMs < previous.untilMs ? previous.signing : undefined];
  const signatures = secrets.flatMap((secret) => (secret === undefined ? [] : sign(secret, id, timestamp, body)));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': (await Promise.all(signatures)).join(' '),
  };
}

async function sign(secret: string, id: string, timestamp: string, body: Uint8Array<ArrayBuffer>): Promise<string> {
  const key = await crypto.subtle.importKey(
    'raw',
    fromBase64(secret.slice(PREFIX.length)),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  );
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + body.length);
  signed.set(head);
  signed.set(body, head.length);
  return `v1,${toBase64(new Uint8Array(await crypto.subtle.sign('HMAC', key, signed)))}`;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return fromBase64Url(text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''));
}

/** A new secret: `whsec_` and 256 random bits in base64. */
export function newSigningSecret(): string {
  return PREFIX + toBase64(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)));
}
