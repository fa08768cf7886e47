import type { OutboundReply } from '../outbound.ts';

/** What a stub of a provider answers: an object as JSON, a text as it is. */
export function json(status: number, body: unknown): OutboundReply {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { status, contentType: 'application/json', body: new TextEncoder().encode(text) };
}
