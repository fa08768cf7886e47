import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** Bytes as latin1 text, or a list of such pieces; a piece may be repeated. */
const bytes = z.union([
  z.string(),
  z.array(z.union([z.string(), z.strictObject({ repeat: z.string(), times: z.int().positive() })])),
]);

const turn = z.strictObject({
  from: z.enum(['client', 'upstream']),
  bytes: bytes.optional(),
  /** What arrives through the proxy, if it differs from what was sent. */
  arrives: bytes.optional(),
  /** Sent once its sender has received this. */
  after: z.string().optional(),
  /** Written in pieces of this many bytes, each as its own TLS record. */
  cut: z.int().positive().optional(),
  /** The next turn does not wait for these bytes to arrive. */
  ahead: z.boolean().optional(),
  /** The sender finishes its side. */
  ends: z.boolean().optional(),
});

/** A legal message exchange: either a request and its reply, or the turns of both sides. */
const conversation = z
  .strictObject({
    name: z.string(),
    request: bytes.optional(),
    reply: bytes.optional(),
    turns: z.array(turn).optional(),
  })
  .transform(({ name, request, reply, turns }) => ({ name, turns: turns ?? exchangeOf(request, reply) }));

const illegalRequest = z.strictObject({
  name: z.string(),
  bytes,
  status: z.int(),
  code: z.string(),
  /** Where the error is. A bad head never reaches an upstream; of a bad body, a part may arrive before the error is known. */
  in: z.enum(['head', 'body']),
  /** The client finishes its side after the bytes. */
  ends: z.boolean().optional(),
});

const illegalReply = z.strictObject({
  name: z.string(),
  bytes,
  method: z.string().default('GET'),
  /** `refused`: the client gets a 502. `broken`: a part of the reply was passed on already, and then the connection ends. */
  outcome: z.enum(['refused', 'broken']),
  /** The upstream finishes its side after the bytes. */
  ends: z.boolean().optional(),
});

const ipLiteral = z.strictObject({ literal: z.string(), status: z.int(), code: z.string(), why: z.string() });

export type Turn = z.infer<typeof turn>;
export type Conversation = z.infer<typeof conversation>;
export type IllegalRequest = z.infer<typeof illegalRequest>;
export type IllegalReply = z.infer<typeof illegalReply>;
type IpLiteral = z.infer<typeof ipLiteral>;

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

function exchangeOf(request: Turn['bytes'] = GET, reply: Turn['bytes'] = OK): Turn[] {
  return [
    { from: 'client', bytes: request },
    { from: 'upstream', bytes: reply },
  ];
}

/** The corpus's host for requests without a binding. */
export const PLAIN = 'plain.example.test';
const GET = `GET / HTTP/1.1\r\nHost: ${PLAIN}\r\n\r\n`;

function read<T>(name: string, schema: z.ZodType<T>): T[] {
  return z.array(schema).parse(JSON.parse(readFileSync(new URL(`${name}.json`, import.meta.url), 'utf8')));
}

export const conversations = (): Conversation[] => read('conversations', conversation);
export const illegalRequests = (): IllegalRequest[] => read('illegal_requests', illegalRequest);
export const illegalReplies = (): IllegalReply[] => read('illegal_replies', illegalReply);
export const ipLiterals = (): IpLiteral[] => read('ip_literals', ipLiteral);

/** The bytes of a case, with `host` in place of the corpus's own host. */
export function bytesOf(written: Turn['bytes'], host = PLAIN): Buffer {
  const pieces = typeof written === 'string' ? [written] : (written ?? []);
  const text = pieces.map((piece) => (typeof piece === 'string' ? piece : piece.repeat.repeat(piece.times))).join('');
  return Buffer.from(text.replaceAll(PLAIN, host), 'latin1');
}
