import type { Mutation } from '../mutation.ts';

const ROW = '403 `connect_port_not_allowed`';
const TEST = 'sidecar/data_plane/other_ports.test.ts';
const REACH = 'sidecar/tunnel/sealed_reach.ts';
const DIALER_TESTS = ['sidecar/upstream/dialer.test.ts', 'sidecar/upstream/proxied_dial.test.ts'] as const;

/** What keeps other ports closed where nothing names them, and a credential at the port that it is for (decision 0077). */
export const OTHER_PORT_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'a port other than 443 is reached only where something names it',
    file: REACH,
    text: 'if (portOfHost(host) === HTTPS_PORT) return allowed === null || allowsHost(allowed, host);',
    replacement: 'if (allowed === null || allowsHost(allowed, host)) return true;',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a port that is part of a host is part of every comparison',
    file: 'sidecar/tunnel/connect_target.ts',
    text: 'return ok(hostOnPort(host, port));',
    replacement: 'return ok(host);',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a tunnel to another port closes when nothing names the port any more',
    file: REACH,
    text: ' && portOfHost(host) === HTTPS_PORT) return () => undefined;',
    replacement: ') return () => undefined;',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a session reaches a host at another port only by its own name',
    file: 'sidecar/tunnel/tunnel.ts',
    text: 'isLimited(session) || portOfHost(host) !== HTTPS_PORT;',
    replacement: 'isLimited(session);',
    tests: [TEST],
  },
  {
    row: '7 IP literals',
    holds: 'on passthrough, a private address is refused on every port, and no name is',
    file: 'shared/net/ip_literal.ts',
    text: 'const name = nameOfHost(host);',
    replacement: 'const name = host;',
    tests: ['shared/net/ip_literal.test.ts'],
  },
  {
    row: ROW,
    holds: 'the port that is dialled is the one of the host',
    file: 'sidecar/upstream/dialer.ts',
    text: 'const port = pinned?.port ?? portOfHost(host);',
    replacement: 'const port = pinned?.port ?? 443;',
    tests: DIALER_TESTS,
  },
  {
    row: ROW,
    holds: 'an earlier sidecar gets no binding that it cannot read',
    file: 'worker/services/sidecars/snapshot.ts',
    text: '.filter(({ host }) => knowsOtherPorts || portOfHost(host) === HTTPS_PORT)',
    replacement: '',
    tests: ['worker/services/sidecars/snapshot.test.ts'],
  },
  {
    row: ROW,
    holds: 'a restored session has its hosts at other ports',
    file: 'sidecar/session/saved_session.ts',
    text: 'otherPorts: session.otherPortsList,',
    replacement: 'otherPorts: null,',
    tests: ['sidecar/session/session_keeper.test.ts'],
  },
  {
    row: ROW,
    holds: 'a plan gets no hosts at other ports besides its lock',
    file: 'sidecar/local_api/session_routes.ts',
    text: "const message = \"other_port_hosts: a plan's steps reach exactly the hosts of their lock: add the host to the plan\";\n    return err(localError('invalid_input', message));",
    replacement: 'return ok(null);',
    tests: ['sidecar/local_api/sandbox_routes.test.ts'],
  },
];
