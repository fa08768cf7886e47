import { createHash, createHmac } from 'node:crypto';
import type { HashPort, OutgoingRequest } from '../../shared/inject/outgoing_request.ts';
import { adapterOf } from '../../shared/inject/schemes.ts';
import { isPresigned, findPresentedSignature } from '../../shared/inject/sigv4_presented.ts';
import type { Injection } from '../../shared/model/host_binding.ts';
import { parseRequestHead } from '../../shared/net/http/http1_head.ts';
import type { HeaderField } from '../../shared/net/http/http1_head.ts';
import type { FuzzTarget } from './fuzz_engine.ts';

const CREDENTIAL = 'cr3d&ntial=/+ %';
const SENTINEL = 'placeholder-0000';

class UnusedHash {
  readonly #hash = createHash('sha256');

  constructor(secret?: unknown) {
    if (secret !== undefined) createHmac('sha256', 'unused');
  }

  update(data: Uint8Array): void {
    this.#hash.update(data);
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
}
const HASH: HashPort = UnusedHash;

function requestOf(target: string, fields: readonly HeaderField[] = []): OutgoingRequest {
  return { method: 'GET', target, host: 'a.test', fields };
}

/** The value written in the scheme's place; null if refused. */
function writeCredential(
  injection: Injection,
  request: OutgoingRequest,
  sentinel: string | null,
): OutgoingRequest | null {
  const write = adapterOf(injection).write(injection, {
    request,
    sentinel,
    credential: CREDENTIAL,
    sessionToken: null,
    accessKeyId: null,
    body: { kind: 'none' },
    now: new Date(0),
    hash: HASH,
  });
  if (write instanceof Promise) throw new Error('only sigv4-resign takes time');
  return write.ok ? write.value : null;
}

/** Each character of a target is one byte. */
const encodedBytes = (part: string): string =>
  part.replaceAll(/[&\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`);

/** Pairs as servers split them: all at `&`, some also at `;`. */
const pairs = (target: string, at: RegExp): [string, string][] => {
  const start = target.indexOf('?');
  const parts = start < 0 ? [] : target.slice(start + 1).split(at);
  return parts.flatMap((part) => [...new URLSearchParams(`&${encodedBytes(part)}`).entries()].slice(0, 1));
};

/** Whether servers find a pair by a name: as written or without an index, ignoring punctuation and case. */
function isRead(given: string, name: string): boolean {
  const [, head = given] = /^([^]+?)\[[^]*\]/.exec(given) ?? [];
  return given === name || lettersOf(given) === name || lettersOf(head) === name;
}

/** A name cut at a NUL, decoded once more like IIS does, without punctuation and case. */
function lettersOf(name: string): string {
  const [cut = ''] = name.split('\0');
  const decoded = cut.replaceAll(/%u[\da-f]{4}/gi, (one) => String.fromCharCode(Number(`0x${one.slice(2)}`)));
  return (
    decoded
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N};]/gu) ?? []
  ).join('');
}

const QUERY_WORDS = ['?', '&', ';', '=', 'key', 'KEY', 'k_ey', 'k.e-y', '[', ']', '[]', '%5b', '%00', '%u006b', '%EF%BD%8B', 'k%65y', '%6b%65%79', '+', '%20', '%26', '%3d', '%3B', '#', 'key=', '&key=1', ';key=2', SENTINEL, 'a=b', '%', '/'] as const; // prettier-ignore

const queryParams: FuzzTarget = {
  name: 'query parameters',
  seeds: ['/a?b=c&key=1&d', `/x?key=${SENTINEL}`, '/?k%65y=1;key=2&e', '/p', '/p?', '/p?a=b&'],
  words: QUERY_WORDS,
  check(target) {
    const injection: Injection = { scheme: 'query-param', queryParam: 'key' };
    // A request line has no other characters, and the target begins with the path.
    if (!/^\/[\x21-\x7e\x80-\xff]*$/.test(target)) return null;
    const presented = adapterOf(injection).findPresented(injection, requestOf(target), SENTINEL);
    const named = pairs(target, /[&;]/).filter(([name]) => isRead(name, 'key'));
    if ((presented === 'absent') !== (named.length === 0)) return `presented ${presented}`;
    if (
      presented === 'sentinel' &&
      pairs(target, /&/).some(([name, value]) => isRead(name, 'key') && value !== SENTINEL)
    )
      return 'a foreign value is taken for the sentinel';
    for (const sentinel of presented === 'sentinel' ? [null, SENTINEL] : [null]) {
      const problem = queryProblem(
        target,
        writeCredential(injection, requestOf(target), sentinel)?.target ?? null,
        sentinel !== null,
      );
      if (problem !== null) return problem;
    }
    return null;
  },
};

function queryProblem(before: string, after: string | null, swapped: boolean): string | null {
  if (after === null) return before.includes('#') ? null : 'is refused';
  for (const at of [/&/, /[&;]/]) {
    const mine = pairs(after, at).filter(([name]) => isRead(name, 'key'));
    if (mine.length !== 1 || mine[0]?.[0] !== 'key' || mine[0][1] !== CREDENTIAL)
      return `a server reads ${JSON.stringify(mine)} in ${after}`;
  }
  const kept = otherPairs(before);
  const isSame = swapped ? otherPairs(after).join('&') === kept.join('&') : after === withPair(before, kept);
  return isSame ? null : `another byte is changed: ${after}`;
}

const isMine = (part: string): boolean => isRead(pairs(`?${part}`, /&/)[0]?.[0] ?? '', 'key');

/** The pairs that are not the credential's, without the parts after a `;` that are. */
function otherPairs(target: string): string[] {
  const [, query = ''] = /^[^?]*\?([^]*)$/.exec(target) ?? [];
  const others = query.split('&').filter((pair) => !isMine(pair));
  return others.map((pair) =>
    pair.includes(';')
      ? pair
          .split(';')
          .filter((part) => !isMine(part))
          .join(';')
      : pair,
  );
}

/** The target with these pairs and the credential's after them; an empty last pair is its place. */
function withPair(target: string, others: readonly string[]): string {
  const before = others.at(-1) === '' ? others.slice(0, -1) : others;
  return `${target.split('?')[0]}?${[...before, `key=${encodeURIComponent(CREDENTIAL)}`].join('&')}`;
}

const OURS = 'AKIDOURS';
const SIGNING: Extract<Injection, { scheme: 'sigv4-resign' }> = {
  scheme: 'sigv4-resign',
  accessKeyId: OURS,
  region: 'r',
  service: 's3',
};

const presigned: FuzzTarget = {
  name: 'signed URLs',
  seeds: [
    `/k?X-Amz-Credential=${OURS}%2F20260101%2Fr%2Fs3%2Faws4_request&X-Amz-Signature=ab`,
    '/k?x-amz-signature=ab&X-AMZ-CREDENTIAL=OTHER/1/r/s3/aws4_request',
    `/k?AWSAccessKeyId=${OURS}&Expires=1&Signature=a%2Bb`,
    '/k?X-Goog-Credential=x%40y&X-Goog-Signature=ab',
    '/k?signature=ab',
  ],
  words: [
    '&',
    '?',
    '=',
    'X-Amz-Signature',
    'x-amz-credential',
    'Signature',
    'AWSAccessKeyId',
    'X-Goog-Signature',
    `${OURS}/`,
    OURS,
    'OTHER',
    '%2D',
    '%58',
    '+',
    '%41',
    '/',
    '%2F',
  ],
  check(target) {
    if (!/^[\x21-\x7e]+$/.test(target)) return null;
    const query = pairs(target, /&/).map(([name, value]): [string, string] => [name.toLowerCase(), value]);
    const has = (name: string): boolean => query.some(([one]) => one === name);
    const valuesOf = (name: string): string[] =>
      query.filter(([one]) => one === name).map(([, value]) => value.split('/')[0] ?? '');
    // A signature without a key counts as foreign too; a parameter named just `signature` counts only beside its key.
    const keysOf = (name: string): (string | null)[] => (valuesOf(name).length > 0 ? valuesOf(name) : [null]);
    const keys = [
      ...(has('x-amz-signature') ? keysOf('x-amz-credential') : []),
      ...(has('signature') ? valuesOf('awsaccesskeyid') : []),
      ...(has('x-goog-signature') ? keysOf('x-goog-credential') : []),
    ];
    if (isPresigned(target) !== keys.length > 0)
      return `${keys.length} keys, but it is ${isPresigned(target) ? '' : 'not '}signed`;
    const said = findPresentedSignature(SIGNING, requestOf(target), null);
    const due = keys.length === 0 ? 'absent' : keys.every((key) => key === OURS) ? 'foreign' : 'foreign_presigned';
    return said === due ? null : `${said}, not ${due}`;
  },
};

const HEADER_INJECTIONS: readonly (readonly [Injection, string, string])[] = [
  [{ scheme: 'bearer' }, 'authorization', `Bearer ${CREDENTIAL}`],
  [{ scheme: 'basic', username: 'u' }, 'authorization', `Basic ${btoa(`u:${CREDENTIAL}`)}`],
  [{ scheme: 'header-template', header: 'X-Api-Key', template: 'key={token}' }, 'x-api-key', `key=${CREDENTIAL}`],
];

const headers: FuzzTarget = {
  name: 'credential headers',
  seeds: [
    'Host: a\r\nAuthorization: Bearer x\r\nauthorization:Basic eDp5\r\nX-B: 1\r\n',
    `AUTHORIZATION: token ${SENTINEL}\r\nX-Api-Key: key=${SENTINEL}\r\n`,
    `authorization: Basic ${btoa(`u:${SENTINEL}`)}\r\nx-api-key:\r\nX-API-KEY: 2\r\n`,
  ],
  words: [
    '\r\n',
    ': ',
    'Authorization: ',
    'authorization:',
    'X-Api-Key: ',
    'X_Api.Key: ',
    'x_api-key: ',
    'Bearer ',
    'Basic ',
    'key=',
    SENTINEL,
    btoa(`u:${SENTINEL}`),
    '\t',
    '=',
    'X: 1',
  ],
  check(lines) {
    const head = parseRequestHead(`GET / HTTP/1.1\r\n${lines}\r\n`, { maxHeaders: 50 });
    if (!head.ok) return null;
    const request = requestOf('/', head.value.fields);
    for (const [injection, place, value] of HEADER_INJECTIONS) {
      const presented = adapterOf(injection).findPresented(injection, request, SENTINEL);
      const isThere = request.fields.some(({ name }) => isVariable(name, place));
      if ((presented === 'absent') === isThere) return `${injection.scheme}: presented ${presented}`;
      for (const sentinel of presented === 'sentinel' ? [null, SENTINEL] : [null]) {
        const problem = headerProblem(
          request,
          writeCredential(injection, request, sentinel),
          place,
          value,
          sentinel !== null,
        );
        if (problem !== null) return `${injection.scheme}: ${problem}`;
      }
    }
    return null;
  },
};

/** Whether CGI maps both names to the same variable. */
function isVariable(name: string, place: string): boolean {
  return name.split(/\W|_/).join('_') === place.replaceAll('-', '_');
}

function headerProblem(
  before: OutgoingRequest,
  after: OutgoingRequest | null,
  place: string,
  value: string,
  swapped: boolean,
): string | null {
  const mine = after?.fields.filter(({ name }) => isVariable(name, place)) ?? [];
  const [only] = mine;
  if (mine.length !== 1 || only === undefined) return `is sent ${mine.length} times`;
  // The user name of a swapped Basic pair stays the client's own.
  const isBasic = value.startsWith('Basic ') && swapped;
  const sent = isBasic ? atob(only.value.slice(6)).replace(/^[^:]*/, 'u') : only.value;
  if (sent !== (isBasic ? `u:${CREDENTIAL}` : value)) return `is sent as ${only.value}`;
  if (!new RegExp(`^${place}: `, 'i').test(only.line) || /[\r\n]/.test(only.line))
    return `is written as ${JSON.stringify(only.line)}`;
  const others = (request: OutgoingRequest | null): string =>
    JSON.stringify(request?.fields.filter(({ name }) => !isVariable(name, place)).map(({ line }) => line));
  return others(after) === others(before) ? null : 'other headers are changed';
}

export const INJECT_TARGETS: readonly FuzzTarget[] = [queryParams, presigned, headers];
