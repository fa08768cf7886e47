import { STATUS_CODES } from 'node:http';

import type { Refusal } from '../../shared/model/refusal.ts';
import { REFUSALS } from '../../shared/model/refusal.ts';
import type { Connection } from '../../machine/connection/connection.ts';
import { ConnectionLost } from '../../machine/connection/connection.ts';

/** How long what a refused client still sends is thrown away, so that it reads the answer before the connection goes. */
const LINGER_MS = 2000;

/** Answers with a refusal: its status and `{"error": {"code", "message"}}`. The connection stays open when `keepOpen`. */
export function writeRefusal(client: Connection, why: Refusal, keepOpen: boolean, withBody = true): void {
  const { status } = REFUSALS[why.reason];
  const body = Buffer.from(`${JSON.stringify({ error: { code: why.reason, message: why.message } })}\n`, 'utf8');
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...(status === 407 ? ['Proxy-Authenticate: Basic realm="svc"'] : []),
    ...(keepOpen ? [] : ['Connection: close']),
    '',
    '',
  ].join('\r\n');
  client.cork();
  client.write(head);
  if (withBody) client.write(body);
  client.uncork();
}

/**
 * Finishes a connection whose peer may still be sending: our side ends, and what comes is thrown away until the peer ends
 * too, because closing with unread bytes would reset the connection before the answer was read (RFC 9112 section 9.6). It
 * has a while for that, counted from when the last of our bytes has left; a slow reader gets all of them.
 */
export async function closeAfterAnswer(client: Connection): Promise<void> {
  client.end();
  const discarded = discardRest(client);
  await client.waitForFlush();
  const timer = setTimeout(() => client.destroy(), LINGER_MS);
  await discarded;
  clearTimeout(timer);
  client.destroy();
}

async function discardRest(client: Connection): Promise<void> {
  try {
    while ((client.take() ?? (await client.nextChunk())) !== null);
  } catch (error) {
    if (!(error instanceof ConnectionLost)) throw error;
  }
}
