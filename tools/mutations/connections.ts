import type { Mutation } from '../mutation.ts';

const GATE = 'shared/net/connection_gate.ts';
const GATE_TEST = 'shared/net/connection_gate.test.ts';
const CROWD = 'sidecar/data_plane/crowd.test.ts';
const NODE_GATE = 'worker/entries/guard_connections.ts';
const NODE_GATE_TEST = 'worker/entries/guard_connections.test.ts';
const CLOSE = 'sidecar/tunnel/close_after_answer.ts';
const CLOSE_TEST = 'sidecar/tunnel/close_after_answer.test.ts';
const STRANGERS = 'sidecar/tunnel/stranger_refusals.ts';

/** Limits before authentication (docs/decisions/0048). */
export const CONNECTION_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Connections that wait',
    holds: 'each peer has a limited number of them',
    file: GATE,
    text: "    if (group.size > this.#options.limits.maxWaitingPerPeer) this.#dropOldest(group, 'waiting_of_peer');\n",
    replacement: '',
    tests: [GATE_TEST, CROWD, NODE_GATE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'all peers together have a limited number of them',
    file: GATE,
    text: "    if (this.#waitingCount > this.#options.limits.maxWaiting) this.#dropOldest(findLargest(this.#waiting), 'waiting');\n",
    replacement: '',
    tests: [GATE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'users of one machine are distinguished',
    file: GATE,
    text: '    if (isShared) this.#tellUsersApart(key);\n',
    replacement: '',
    tests: [GATE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'they are dropped if descriptors run short',
    file: GATE,
    text: 'if (this.#open >= maxOpen && !this.#makeRoom())',
    replacement: 'if (this.#open >= maxOpen)',
    tests: [GATE_TEST, CROWD],
  },
  {
    row: 'Connections that wait',
    holds: 'a connection that serves a request does not count',
    file: GATE,
    text: '      markServed: () => this.#leave(entry),\n',
    replacement: '      markServed: () => undefined,\n',
    tests: [GATE_TEST, NODE_GATE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'one container has half of all connections at most',
    file: GATE,
    text: '(this.#openOf.get(key) ?? 0) >= Math.max(1, Math.floor(maxOpen / 2))',
    replacement: 'false',
    tests: [GATE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'descriptors are reserved for dialling',
    file: GATE,
    text: 'Math.max(1, Math.floor((descriptors - kept) / 2))',
    replacement: 'Math.max(1, descriptors)',
    tests: [GATE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'a first head has its own deadline',
    file: 'sidecar/tunnel/listener.ts',
    text: 'limits.firstHeadSeconds * 1000',
    replacement: 'limits.connectTimeoutSeconds * 1000',
    tests: [CROWD],
  },
  {
    row: 'Connections that wait',
    holds: 'a first head has a smaller limit',
    file: 'sidecar/tunnel/listener.ts',
    text: 'Math.min(limits.maxFirstHeadBytes, limits.maxHeadBytes)',
    replacement: 'limits.maxHeadBytes',
    tests: [CROWD],
  },
  {
    row: 'Connections that wait',
    holds: 'at the control plane a kept-alive connection counts between its requests',
    file: NODE_GATE,
    text: '    if (connection.underWay === 0) admission.markWaiting();\n',
    replacement: '',
    tests: [NODE_GATE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'at the control plane a connection with an incomplete request counts',
    file: NODE_GATE,
    text: "  if (hasBody(request)) request.once('end', onArrived);\n  else onArrived();\n",
    replacement: '  onArrived();\n',
    tests: [NODE_GATE_TEST],
  },
  {
    row: 'Every refusal is audited',
    holds: 'clients that have not authenticated cannot fill the spool with refusals',
    file: STRANGERS,
    text: 'if (this.#single <= MOST_SINGLE) ',
    replacement: 'if (this.#single > 0) ',
    tests: ['sidecar/tunnel/stranger_refusals.test.ts'],
  },
  {
    row: 'Every refusal is audited',
    holds: 'summarised refusals are counted',
    file: STRANGERS,
    text: '    else sum.count += 1;\n',
    replacement: '',
    tests: ['sidecar/tunnel/stranger_refusals.test.ts'],
  },
  {
    row: 'Connections that wait',
    holds: 'a client that was refused is dropped if it pauses for too long',
    file: CLOSE,
    text: 'pause = setTimeout(drop, UNSENT_MS);',
    replacement: 'pause = undefined;',
    tests: [CLOSE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'a client that was refused is dropped if it sends for too long',
    file: CLOSE,
    text: 'const whole = setTimeout(drop, MOST_UNSENT_MS);',
    replacement: 'const whole = undefined;',
    tests: [CLOSE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'a client that was refused is dropped if it sends too much',
    file: CLOSE,
    text: 'bytes <= MOST_UNSENT_BYTES',
    replacement: 'bytes >= 0',
    tests: [CLOSE_TEST],
  },
  {
    row: 'Connections that wait',
    holds: 'a client that was refused counts as a tunnel while it still sends',
    file: 'sidecar/tunnel/serve.ts',
    text: 'if (!another) await closeAfterAnswer(client);',
    replacement: 'if (!another) void closeAfterAnswer(client);',
    tests: ['sidecar/data_plane/hostile_client.test.ts'],
  },
  {
    row: 'Every refusal is audited',
    holds: 'another protocol inside TLS is refused before its head ends',
    file: 'machine/connection/read_head.ts',
    text: "canStartRequest(bytes) ? null : { kind: 'not_http' }",
    replacement: "canStartRequest(bytes) || bytes.length > 0 ? null : { kind: 'not_http' }",
    tests: ['sidecar/data_plane/hostile_client.test.ts'],
  },
  {
    row: 'Every refusal is audited',
    holds: 'another protocol in place of TLS is refused at its first byte',
    file: 'sidecar/tunnel/tunnel.ts',
    text: 'if (first !== null && !canStartTls(first) && session.selfTest !== true) {',
    replacement: 'if (first !== null && !canStartTls(first) && session.selfTest === true) {',
    tests: ['sidecar/data_plane/hostile_client.test.ts'],
  },
];
