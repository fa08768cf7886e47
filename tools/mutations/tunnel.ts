import type { Mutation } from '../mutation.ts';

const ROW = 'Hosts that are not intercepted';
const CARRY = 'sidecar/tunnel/carry_bytes.ts';
const CARRY_TEST = 'sidecar/tunnel/carry_bytes.test.ts';
const SERVICE = 'worker/services/bindings/tunnel_hosts.ts';
const SERVICE_TEST = 'worker/tunnel_hosts.test.ts';

/** What keeps connections that are carried unread away from credentials, steps and sealed sessions (decision 0074). */
export const TUNNEL_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'a listed host with a binding is intercepted',
    file: 'shared/resolve/resolve.ts',
    text: 'isListed(host) && bindingsFor(host).length === 0 &&',
    replacement: 'isListed(host) &&',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'a listed host of a connector is intercepted',
    file: 'shared/resolve/resolve.ts',
    text: '&& bindingsFor(host).length === 0 && !index.hosts.has(host)',
    replacement: '&& bindingsFor(host).length === 0',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'the server name of the handshake is the host of the tunnel',
    file: CARRY,
    text: 'if (hello?.serverName?.toLowerCase() === host) return null;',
    replacement: 'if (hello !== null) return null;',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: "a plan's step carries nothing unread",
    file: CARRY,
    text: 'if (session.reach !== undefined) {',
    replacement: 'if (session.reach === null) {',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'a sealed session carries only what it names',
    file: CARRY,
    text: 'if (!isLimited(session) && session.sealed !== true) return ok(true);',
    replacement: 'return ok(true);',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'an open tunnel closes when its host gets a binding or leaves the list',
    file: CARRY,
    text: 'const stop = ports.policy.onChanged(look);',
    replacement: 'const stop = ports.policy.onChanged(() => undefined);',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'a tunnel is recorded before a byte of it goes up',
    file: CARRY,
    text: '    await ports.audit.recordInTurn(tunnelledEvent(session.id, host, null));\n',
    replacement: '',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'a hello with two server names is not read',
    file: 'shared/net/client_hello.ts',
    text: '      if (hasServerName) throw new ShortInput();\n',
    replacement: '',
    tests: ['shared/net/client_hello.test.ts'],
  },
  {
    row: ROW,
    holds: 'a host with a binding is not listed',
    file: SERVICE,
    text: 'if (found !== null) return err(conflict(null, found));',
    replacement: '',
    tests: [SERVICE_TEST],
  },
  {
    row: ROW,
    holds: 'the provider of a session’s login is intercepted, also if it is listed',
    file: CARRY,
    text: 'return selfTest || login?.host === host ||',
    replacement: 'return selfTest ||',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'the host that is asked for the account of a session’s login is intercepted, also if it is listed',
    file: CARRY,
    text: ' || login?.account?.host === host;',
    replacement: ';',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'nothing is carried if its event would not fit',
    file: CARRY,
    text: "    if (ports.exchange.audit.exhausted) return { kind: 'refused', reason: auditUnavailable().reason };\n",
    replacement: '',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'a tunnel ends with its session',
    file: 'sidecar/tunnel/enter_tunnel.ts',
    text: 'for (const connection of connections) connection.destroy();',
    replacement: '',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'the connection to the host ends with its session too',
    file: 'sidecar/tunnel/tunnel.ts',
    text: '    connections.push(upstream.value);\n',
    replacement: '',
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'nobody is told to tunnel a bound host whose certificate a client refuses',
    file: 'sidecar/tunnel/tunnel.ts',
    text: "failed === 'certificate_refused' && isFree &&",
    replacement: "failed === 'certificate_refused' &&",
    tests: [CARRY_TEST],
  },
  {
    row: ROW,
    holds: 'the list needs the scopes of host bindings',
    file: 'worker/tokens/scopes.ts',
    text: "'tunnel-hosts': 'host-bindings',",
    replacement: "'tunnel-hosts': 'secrets',",
    tests: ['worker/tokens/personal_tokens.test.ts'],
  },
];
