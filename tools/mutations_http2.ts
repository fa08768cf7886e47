import type { Mutation } from './mutation.ts';

const ROW = 'HTTP/2';
const STREAMS = 'sidecar/tunnel/streams.test.ts';
const HOSTILE = 'sidecar/tunnel/hostile_streams.test.ts';
const OVER_HTTP2 = 'sidecar/tunnel/over_http2.test.ts';
const HELLO = 'shared/net/client_hello.ts';
const HEAD_TEST = 'shared/net/http2_head.test.ts';
const STREAM = 'machine/connection/stream_connection.ts';

/** What holds on each stream of HTTP/2 (decision 0070). */
export const HTTP2_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'a message that was cut off never looks complete',
    file: STREAM,
    text: 'if (chunk === null && !stream.closed) end.isSeen = true;',
    replacement: 'if (chunk === null) end.isSeen = true;',
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'a body that is buffered for its credential ends with its stream, and not before',
    file: 'sidecar/exchange/body.ts',
    text: "if (piece === 'lost' || (piece === null && !reader.end().ok)) {",
    replacement: 'if (piece === null && !reader.end().ok) {',
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'what injection wrote is never indexed',
    file: 'sidecar/exchange/send_credentialed.ts',
    text: "head: head.version === '2' ? withSecretsUnindexed(head, before) : head,",
    replacement: "head: head.version === '2' && withSecretsUnindexed(head, before) === null ? head : head,",
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'an upstream session is used with one credential',
    file: 'sidecar/upstream/session_lanes.ts',
    text: 'known !== undefined && known.credential === credential',
    replacement: 'known !== undefined',
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'no request is sent again for a client that is gone',
    file: 'sidecar/exchange/forward.ts',
    text: 'const isWanted = context.client?.closed !== true;',
    replacement: 'const isWanted = context.client !== undefined;',
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'a Host beside an `:authority` names the same host',
    file: 'sidecar/exchange/incoming.ts',
    text: 'hosts.every(({ value }) => value === authority.value)',
    replacement: 'hosts.every(({ value }) => value !== null)',
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'a client that names another server gets no HTTP/2',
    file: 'sidecar/tunnel/agree_on_version.ts',
    text: 'return isSame || !offered.includes(HTTP_1_1) ? offered : [HTTP_1_1];',
    replacement: 'return isSame || offered.length > 0 ? offered : [HTTP_1_1];',
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'nothing is dialled early for a request that would be refused',
    file: 'sidecar/tunnel/agree_on_version.ts',
    text: 'return !isRefusedIpLiteral(host) || policyAdmitsHost(',
    replacement: 'return !isRefusedIpLiteral(host) || !policyAdmitsHost(',
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'a header value has no line break',
    file: 'shared/net/http2_head.ts',
    text: 'if (!isAllOfClass(value, FIELD_TEXT)) return invalid',
    replacement: 'if (value.length < 0) return invalid',
    tests: [HEAD_TEST],
  },
  {
    row: ROW,
    holds: 'a target is a path',
    file: 'shared/net/http2_head.ts',
    text: "if (!target.startsWith('/') && !(target === '*' && method === 'OPTIONS')) return invalid",
    replacement: "if (target === '') return invalid",
    tests: [HEAD_TEST],
  },
  {
    row: ROW,
    holds: 'headers have a limit of bytes',
    file: 'shared/net/http2_head.ts',
    text: 'if (bytes > maxHeadBytes) {',
    replacement: 'if (bytes > maxHeadBytes * 1000) {',
    tests: [HEAD_TEST, OVER_HTTP2],
  },
  {
    row: ROW,
    holds: 'resets are no way to more work',
    file: 'sidecar/tunnel/serve_streams.ts',
    text: 'if (running.size >= MOST_STREAMS * 2) {',
    replacement: 'if (running.size >= MOST_STREAMS * 2000) {',
    tests: [HOSTILE],
  },
  {
    row: ROW,
    holds: 'requests at once are limited for a session, not only for each of its tunnels',
    file: 'sidecar/tunnel/serve_streams.ts',
    text: 'request, leave !== null,',
    replacement: 'request, true,',
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'a refused call of gRPC gets a status of gRPC',
    file: 'sidecar/tunnel/serve_streams.ts',
    text: 'if (called !== null) return',
    replacement: "if (called === '') return",
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'messages of gRPC are asked for uncompressed where the reply is searched',
    file: 'sidecar/exchange/prepare_request.ts',
    text: 'if (PER_MESSAGE_CODINGS.has(name))',
    replacement: "if (PER_MESSAGE_CODINGS.has(name) && name === '')",
    tests: [STREAMS],
  },
  {
    row: ROW,
    holds: 'each message of gRPC is passed on when it has arrived, also where the reply is searched',
    file: 'shared/inject/scrub/reply_format.ts',
    text: '.reduce((total, byte) => total * 256 + byte, 0);',
    replacement: '.reduce((total, byte) => total * 256 + byte, extraBytes);',
    tests: ['shared/inject/scrub/reply_format.test.ts', STREAMS],
  },
  {
    row: ROW,
    holds: 'a stream is recorded before it is answered',
    file: 'sidecar/tunnel/serve_streams.ts',
    text: 'await recordOutcome(outcome, tunnel, ports);',
    replacement: "if (outcome.kind !== 'refused') await recordOutcome(outcome, tunnel, ports);",
    tests: [OVER_HTTP2],
  },
  {
    row: ROW,
    holds: 'a hello is read from a limited number of records',
    file: HELLO,
    text: 'record < MOST_RECORDS;',
    replacement: 'record < MOST_RECORDS * 1000;',
    tests: ['shared/net/client_hello.test.ts'],
  },
];
