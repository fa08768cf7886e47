import type { ClientHttp2Session, ClientHttp2Stream, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { constants } from 'node:http2';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { bearerBinding } from '../../shared/model/testing/sample_binding.ts';
import { fieldOf } from '../../shared/net/http/http2_head.ts';
import type { DataPlane } from '../testing/data_plane.ts';
import { startDataPlane } from '../testing/data_plane.ts';

/** WebSockets over HTTP/2, opened by an extended CONNECT (RFC 8441), between a server and a client of node:http2. */

const HOST = 'api.example.test';
const SECRET = 'planted-secret-0123456789';
const MASK = '*'.repeat(SECRET.length);
const REF = { owner: 'personal', path: 'user/demo' } as const;
const {
  NGHTTP2_CANCEL: CANCEL,
  NGHTTP2_INTERNAL_ERROR: INTERNAL_ERROR,
  NGHTTP2_PROTOCOL_ERROR: PROTOCOL_ERROR,
} = constants;
const TAKES = { enableConnectProtocol: true };

let plane: DataPlane;
/** The requests that the upstream received, and what arrived on each. */
let seen: { readonly fields: readonly string[]; readonly stream: ServerHttp2Stream; body: string; isEnded: boolean }[];
let upstreamSession: ServerHttp2Session | null;

beforeEach(async () => {
  plane = await startDataPlane();
  plane.credentials.set(REF, SECRET);
  seen = [];
  upstreamSession = null;
});

afterEach(async () => {
  await plane.stop();
  expect(plane.errors).toEqual([]);
});

/** An upstream that records each request; `answer` decides what it gets. */
function serve(answer: (stream: ServerHttp2Stream) => void, settings: object = TAKES): Promise<void> {
  return plane.streamUpstream(
    HOST,
    (stream, fields, session) => {
      upstreamSession = session;
      const request = { fields, stream, body: '', isEnded: false };
      seen.push(request);
      stream.on('data', (data: Buffer) => (request.body += data.toString('latin1')));
      stream.on('end', () => (request.isEnded = !stream.closed));
      answer(stream);
    },
    ['h2'],
    settings,
  );
}

const open = (stream: ServerHttp2Stream): void => stream.respond({ ':status': 200 }, { endStream: false });

function connectFields(more: readonly string[] = []): string[] {
  return [
    ':method',
    'CONNECT',
    ':protocol',
    'websocket',
    ':scheme',
    'https',
    ':authority',
    HOST,
    ':path',
    '/ws?a=b',
    'sec-websocket-version',
    '13',
    'sec-websocket-extensions',
    'permessage-deflate',
    ...more,
  ];
}

/** A session whose server has announced that it takes WebSockets. */
async function openAnnounced(): Promise<ClientHttp2Session> {
  const session = await plane.openSession(HOST);
  await announced(session);
  return session;
}

async function announced(session: ClientHttp2Session): Promise<void> {
  await expect.poll(() => session.remoteSettings.enableConnectProtocol).toBe(true);
}

interface Got {
  status: string | undefined;
  fields: readonly string[];
  body: string;
  isEnded: boolean;
  code: number | null;
}

function read(stream: ClientHttp2Stream): Got {
  const got: Got = { status: undefined, fields: [], body: '', isEnded: false, code: null };
  stream.on('response', (_object, _flags, list: readonly string[]) => {
    got.status = fieldOf(list, ':status');
    got.fields = list;
  });
  stream.on('data', (data: Buffer) => (got.body += data.toString('latin1')));
  stream.on('end', () => (got.isEnded = !stream.closed));
  stream.on('error', () => undefined);
  stream.on('close', () => (got.code = stream.rstCode ?? 0));
  return got;
}

function connect(session: ClientHttp2Session, fields = connectFields(), endStream = false) {
  const stream = session.request(fields, { endStream });
  return { stream, got: read(stream) };
}

function textFrame(text: string): Buffer {
  return Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)]);
}

function plainGet(session: ClientHttp2Session): Got {
  const fields = [':method', 'GET', ':scheme', 'https', ':authority', HOST, ':path', '/page'];
  return read(session.request(fields, { endStream: true }));
}

describe('the setting is announced', () => {
  test('only where the upstream announced it', async () => {
    await serve((stream) => {
      stream.respond({ ':status': 200 });
      stream.end('page');
    }, {});
    const session = await plane.openSession(HOST);
    const got = plainGet(session);
    await expect.poll(() => got.body).toBe('page');
    expect(session.remoteSettings.enableConnectProtocol).toBe(false);
  });

  test('also late, when the upstream does', async () => {
    await serve((stream) => {
      stream.respond({ ':status': 200 });
      stream.end('page');
    }, {});
    const session = await plane.openSession(HOST);
    const got = plainGet(session);
    await expect.poll(() => got.body).toBe('page');
    upstreamSession?.settings(TAKES);
    await announced(session);
  });

  test('and a client that asks where it is not has its stream reset', async () => {
    await serve(open, {});
    const session = await plane.openSession(HOST);
    await once(session, 'remoteSettings');
    const { got } = connect(session);
    await expect.poll(() => got.code).not.toBe(null);
    expect([got.status, seen]).toEqual([undefined, []]);
  });
});

describe('a WebSocket over HTTP/2', () => {
  test('is carried byte for byte in both directions without a binding', async () => {
    await serve((stream) => {
      open(stream);
      stream.write(textFrame(`hello ${SECRET}`));
    });
    const { stream, got } = connect(await openAnnounced());
    await expect.poll(() => got.body).toBe(`\x81\x1fhello ${SECRET}`);
    stream.write('raw bytes');
    await expect.poll(() => seen[0]?.body).toBe('raw bytes');
    expect(seen[0]?.fields).toEqual(connectFields());
    expect(plane.audit.events).toMatchObject([
      { type: 'sandbox.proxy.passthrough', data: { 'svc.proxy.method': 'GET', 'svc.proxy.upstream.status': 200 } },
    ]);
  });

  test('gets the credential in its CONNECT, without extensions, and its messages are masked', async () => {
    await serve((stream) => {
      stream.respond({ ':status': 200, 'x-echo': SECRET });
      stream.write(textFrame(`hello ${SECRET}`));
    });
    plane.policy.use([bearerBinding(HOST)]);
    const { got } = connect(await openAnnounced());
    await expect.poll(() => got.body).toBe(`\x81\x1fhello ${MASK}`);
    expect(fieldOf(got.fields, 'x-echo')).toBe(MASK);
    const fields = seen[0]?.fields ?? [];
    expect(fieldOf(fields, 'authorization')).toBe(`Bearer ${SECRET}`);
    expect([fieldOf(fields, ':method'), fieldOf(fields, ':protocol')]).toEqual(['CONNECT', 'websocket']);
    expect(fields).not.toContain('sec-websocket-extensions');
    expect(plane.audit.events.map(({ type }) => type)).toEqual(['sandbox.proxy.binding_injected']);
    expect(JSON.stringify(plane.audit.events)).not.toContain(SECRET);
  });

  test('ends for good when both ends have ended, and each half alone before', async () => {
    await serve((stream) => {
      open(stream);
      stream.end(textFrame('last'));
    });
    const { stream, got } = connect(await openAnnounced());
    await expect.poll(() => got.isEnded).toBe(true);
    expect(got.code).toBe(null);
    stream.end('still sent');
    await expect.poll(() => seen[0]).toMatchObject({ body: 'still sent', isEnded: true });
    await expect.poll(() => got.code).toBe(0);
    await expect.poll(() => plane.openTunnels()).toBe(1);
  });

  test('passes on the end of a client that only listens', async () => {
    await serve(open);
    const { got } = connect(await openAnnounced(), connectFields(), true);
    await expect.poll(() => seen[0]?.isEnded).toBe(true);
    expect(got.status).toBe('200');
    seen[0]?.stream.end(textFrame('late'));
    await expect.poll(() => got).toMatchObject({ body: '\x81\x04late', isEnded: true, code: 0 });
  });

  // Without trailers to come, node:http2 ends a stream before it resets it.
  const CUTS_OFF = { endStream: false, waitForTrailers: true };

  test('is reset on one side when it is on the other, and does not look complete', async () => {
    await serve((stream) => {
      stream.respond({ ':status': 200 }, CUTS_OFF);
      stream.write(textFrame('hello'));
    });
    const session = await openAnnounced();
    const first = connect(session);
    await expect.poll(() => first.got.body).toContain('hello');
    seen[0]?.stream.close(INTERNAL_ERROR);
    await expect.poll(() => first.got.code).toBe(INTERNAL_ERROR);
    expect(first.got.isEnded).toBe(false);
    const second = session.request(connectFields(), CUTS_OFF);
    const got = read(second);
    await expect.poll(() => got.body).toContain('hello');
    second.close(CANCEL);
    await expect.poll(() => seen[1]?.stream.rstCode).toBe(CANCEL);
    expect(seen[1]?.isEnded).toBe(false);
  });

  test('is reset also if the upstream had ended its side before', async () => {
    await serve((stream) => {
      open(stream);
      stream.end(textFrame('last'));
    });
    const { got } = connect(await openAnnounced());
    await expect.poll(() => got.isEnded).toBe(true);
    seen[0]?.stream.close(INTERNAL_ERROR);
    await expect.poll(() => got.code).toBe(INTERNAL_ERROR);
  });

  test('ends on both sides when its binding is removed', async () => {
    await serve(open);
    plane.policy.use([bearerBinding(HOST)]);
    const { got } = connect(await openAnnounced());
    await expect.poll(() => got.status).toBe('200');
    plane.policy.use([]);
    await expect.poll(() => [got.isEnded, got.code === null, seen[0]?.stream.closed]).toEqual([false, false, true]);
  });

  test('holds up its own stream alone if its client does not read', async () => {
    await serve((stream) => {
      if (fieldOf(seen.at(-1)?.fields ?? [], ':path') === '/page') {
        stream.respond({ ':status': 200 });
        stream.end('page');
        return;
      }
      open(stream);
      stream.write(Buffer.alloc(8 * 1024 * 1024));
    });
    const session = await openAnnounced();
    const slow = session.request(connectFields());
    slow.on('error', () => undefined);
    await once(slow, 'response');
    slow.pause();
    const got = plainGet(session);
    await expect.poll(() => got.body).toBe('page');
    slow.close(CANCEL);
    await expect.poll(() => seen[0]?.stream.closed).toBe(true);
  });

  test('has an upstream connection of its credential', async () => {
    const sessions = new Set<object | undefined>();
    await serve((stream) => {
      sessions.add(stream.session);
      open(stream);
    });
    plane.policy.use([bearerBinding(HOST)]);
    const session = await openAnnounced();
    const first = connect(session);
    await expect.poll(() => first.got.status).toBe('200');
    plane.credentials.set(REF, 'another-secret-0123456789');
    const second = connect(session);
    await expect.poll(() => second.got.status).toBe('200');
    expect(sessions.size).toBe(2);
    expect(seen.map(({ fields }) => fieldOf(fields, 'authorization'))).toEqual([
      `Bearer ${SECRET}`,
      'Bearer another-secret-0123456789',
    ]);
  });
});

test('a limit of bytes counts its frames in both directions', async () => {
  await serve((stream) => {
    open(stream);
    stream.write(textFrame(`hello ${SECRET}`));
  });
  const binding = bearerBinding(HOST, { bytesPerDay: 1000 });
  plane.policy.use([binding]);
  const { stream, got } = connect(await openAnnounced());
  const frame = textFrame(`hello ${MASK}`);
  await expect.poll(() => got.body).toBe(frame.toString('latin1'));
  stream.write('raw bytes');
  await expect.poll(() => seen[0]?.body).toBe('raw bytes');
  expect(plane.bytesCounted(binding.id)).toBe(frame.length + 'raw bytes'.length);
});

describe('before the answer', () => {
  test('frames are held, and sent after it', async () => {
    await serve(() => undefined);
    const { stream, got } = connect(await openAnnounced());
    stream.write('early');
    await expect.poll(() => seen.length).toBe(1);
    const { session } = seen[0]?.stream ?? {};
    await new Promise<void>((resolve) => session?.ping(() => resolve()));
    expect(seen[0]?.body).toBe('');
    seen.forEach((request) => open(request.stream));
    await expect.poll(() => seen[0]?.body).toBe('early');
    expect(got.status).toBe('200');
  });

  test.each([
    ['404', { ':status': 404 }],
    ['a redirect', { ':status': 302, location: '/other' }],
    ['401', { ':status': 401 }],
  ])('an upstream that answers %s gets no frames, and its reply is passed on', async (_what, head) => {
    await serve((stream) => {
      stream.respond(head);
      stream.end(`no ${SECRET}`);
    });
    plane.policy.use([bearerBinding(HOST)]);
    const { stream, got } = connect(await openAnnounced());
    stream.write('early');
    await expect.poll(() => got).toMatchObject({ status: String(head[':status']), body: `no ${MASK}`, isEnded: true });
    await expect.poll(() => seen[0]?.stream.closed).toBe(true);
    expect(seen[0]?.body).toBe('');
  });

  test.each([
    ['another success', { ':status': 201 }],
    ['a page', { ':status': 200, 'content-type': 'text/html' }],
    ['a compressed page', { ':status': 200, 'content-encoding': 'gzip' }],
  ])('a credentialed one that is answered with %s is refused, and nothing of it is read', async (_what, head) => {
    await serve((stream) => {
      stream.respond(head);
      stream.end(SECRET);
    });
    plane.policy.use([bearerBinding(HOST)]);
    const { got } = connect(await openAnnounced());
    await expect.poll(() => got).toMatchObject({ status: '502', isEnded: true });
    expect(got.body).toContain('upstream_invalid_reply');
    expect(JSON.stringify(got)).not.toContain(SECRET);
  });

  test.each([`{"echo": "${SECRET}"}`, `<p>${SECRET}</p>`, SECRET, `\n${SECRET}`, `\x1f\x8b${SECRET}`])(
    'a credentialed one that is answered with %j and no type is reset, and nothing of it is read',
    async (page) => {
      await serve((stream) => {
        open(stream);
        stream.end(page, 'latin1');
      });
      plane.policy.use([bearerBinding(HOST)]);
      const { got } = connect(await openAnnounced());
      await expect.poll(() => got.code).toBe(PROTOCOL_ERROR);
      expect([got.body, got.isEnded]).toEqual(['', false]);
    },
  );

  test('an upstream that resets it is a 502', async () => {
    await serve((stream) => stream.close(INTERNAL_ERROR));
    const { got } = connect(await openAnnounced());
    await expect.poll(() => got.body).toContain('upstream_unreachable');
  });

  test('a client that leaves resets it upstream', async () => {
    await serve(() => undefined);
    const { stream } = connect(await openAnnounced());
    await expect.poll(() => seen.length).toBe(1);
    stream.close(CANCEL);
    await expect.poll(() => seen[0]?.stream.rstCode).toBe(CANCEL);
    await expect.poll(() => plane.audit.events.length).toBe(1);
  });
});

describe('is refused, and reaches no upstream:', () => {
  const without = (name: string): string[] => {
    const fields = connectFields();
    fields.splice(fields.indexOf(name), 2);
    return fields;
  };
  const other = (name: string, value: string): string[] => {
    const fields = connectFields();
    fields[fields.indexOf(name) + 1] = value;
    return fields;
  };

  test.each([
    ['no :protocol', without(':protocol')],
    ['no :authority', [...without(':authority'), 'host', HOST]],
    ['another :protocol', other(':protocol', 'connect-udp')],
    ['a list as :protocol', other(':protocol', 'websocket, h2c')],
    ['GET with a :protocol', other(':method', 'GET')],
    ['the scheme http', other(':scheme', 'http')],
    ['a content-length', connectFields(['content-length', '4'])],
    ['an upgrade header', connectFields(['upgrade', 'websocket'])],
  ])('%s', async (_what, fields) => {
    await serve(open);
    plane.policy.use([bearerBinding(HOST)]);
    const session = await openAnnounced();
    const answer = await attempt(session, fields);
    expect(answer).toMatch(/^(?:400|closed|not sent)$/);
    expect(seen).toEqual([]);
    expect(plane.credentials.asked).toEqual([]);
  });

  test('another authority than the tunnel’s, with a binding', async () => {
    await serve(open);
    plane.policy.use([bearerBinding(HOST)]);
    expect(await attempt(await openAnnounced(), other(':authority', 'evil.example.test'))).toBe('421');
    expect(seen).toEqual([]);
  });

  test('a binding that only reads', async () => {
    await serve(open);
    plane.policy.use([bearerBinding(HOST, { effect: 'read' })]);
    const { got } = connect(await openAnnounced());
    await expect.poll(() => got).toMatchObject({ status: '403', isEnded: true });
    expect(got.body).toContain('effect_not_allowed');
    expect([seen, plane.credentials.asked]).toEqual([[], []]);
  });

  test('an operation that needs an approval', async () => {
    await serve(open);
    const operation = sampleOperation({ method: 'GET', path: '/ws', effect: 'write', approval: 'required' });
    plane.policy.use([], [sampleConnector([operation], { hosts: [HOST] })]);
    const { got } = connect(await openAnnounced());
    await expect.poll(() => got).toMatchObject({ status: '403', isEnded: true });
    expect(got.body).toContain('effect_not_allowed');
    expect(seen).toEqual([]);
  });

  test('no policy in force', async () => {
    await serve(open);
    const session = await openAnnounced();
    plane.policy.refuse('snapshot_expired');
    const { got } = connect(session);
    await expect.poll(() => got).toMatchObject({ status: '503', isEnded: true });
    expect(seen).toEqual([]);
  });
});

/** The status of a reply; `closed` if the stream was reset, `not sent` if the client's own library refuses the request. */
async function attempt(session: ClientHttp2Session, fields: string[]): Promise<string> {
  try {
    const { got } = connect(session, fields);
    await expect.poll(() => got.status ?? got.code).not.toBe(null);
    return got.status ?? 'closed';
  } catch (error) {
    if (error instanceof TypeError || (error instanceof Error && 'code' in error)) return 'not sent';
    throw error;
  }
}
