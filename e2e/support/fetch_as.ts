import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';

export interface SentAs {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | URLSearchParams;
  readonly signal?: AbortSignal;
}

/** A request to a server by a name that this machine does not resolve, which `fetch` would not send. Redirects are not followed. */
export async function fetchAs(
  host: string,
  url: string,
  { method = 'GET', headers = {}, body, signal }: SentAs,
): Promise<Response> {
  const type = body instanceof URLSearchParams ? { 'content-type': 'application/x-www-form-urlencoded' } : {};
  const sent = request(url, {
    method,
    headers: { ...type, ...headers, host },
    agent: false,
    ...(signal && { signal }),
  });
  const answered = once(sent, 'response');
  sent.end(body?.toString());
  const [reply]: IncomingMessage[] = await answered;
  if (reply === undefined) throw new Error(`${url} was not answered`);
  const pairs = Object.entries(reply.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  const status = reply.statusCode ?? 0;
  const bytes = await buffer(reply);
  return new Response(status === 204 || status === 304 ? null : Uint8Array.from(bytes), { status, headers: pairs });
}
