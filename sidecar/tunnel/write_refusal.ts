import { STATUS_CODES } from 'node:http';

import type { ReplyType } from '../../shared/connect/login_reply.ts';
import type { Refusal } from '../../shared/model/refusal.ts';
import { REFUSALS } from '../../shared/model/refusal.ts';
import type { Connection } from '../../machine/connection/connection.ts';

const CONTENT_TYPES: Readonly<Record<ReplyType, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
};

/** Answers with a refusal: its status and `{"error": {"code", "message"}}`. The connection stays open when `keepOpen`. */
export function writeRefusal(client: Connection, why: Refusal, keepOpen: boolean, withBody = true): void {
  const { status } = REFUSALS[why.reason];
  writeText(client, status, { type: 'json', body: refusalBody(why) }, keepOpen, withBody, refusalFields(why));
}

/** The header fields of a refusal beside those of its body. */
export function refusalFields({ retryAfterSeconds }: Refusal): readonly (readonly [name: string, value: string])[] {
  return retryAfterSeconds === undefined ? [] : [['Retry-After', String(retryAfterSeconds)]];
}

/** `{"error": {"code", "message"}}` */
export function refusalBody({ reason, message }: Refusal): string {
  return JSON.stringify({ error: { code: reason, message } });
}

/** Answers with JSON that svc made. */
export function writeJson(client: Connection, status: number, json: string, keepOpen: boolean, withBody = true): void {
  writeText(client, status, { type: 'json', body: json }, keepOpen, withBody);
}

/** The body of an answer that svc made, and its type; JSON gets a line break at its end. */
export function answerBody({ type, body }: LocalText): { readonly contentType: string; readonly bytes: Buffer } {
  return { contentType: CONTENT_TYPES[type], bytes: Buffer.from(type === 'json' ? `${body}\n` : body, 'utf8') };
}

interface LocalText {
  readonly type: ReplyType;
  readonly body: string;
}

/** Answers with this text. */
export function writeText(
  client: Connection,
  status: number,
  text: LocalText,
  keepOpen: boolean,
  withBody = true,
  fields: ReturnType<typeof refusalFields> = [],
): void {
  const { contentType, bytes: body } = answerBody(text);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Refused'}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${body.length}`,
    ...fields.map(([name, value]) => `${name}: ${value}`),
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
