import type { Mutation } from '../mutation.ts';

const ROW = '403 `plain_http_bound_host`';
const TEST = 'sidecar/data_plane/plain_http.test.ts';
const REACH = 'sidecar/tunnel/sealed_reach.ts';
const TUNNEL = 'sidecar/tunnel/plain_tunnel.ts';
const DIALER_TEST = 'sidecar/upstream/plain_dialer.test.ts';

/** What keeps plain HTTP at the hosts that a person named for it, and credentials away from it (decision 0076). */
export const PLAIN_HTTP_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'nothing is sent over plain HTTP to a host that has a credential',
    file: 'sidecar/exchange/plain_host.ts',
    text: 'if (!isBound && !isOfLogin && policy.certificateFor(host) === null) return ok(undefined);',
    replacement: 'return ok(undefined);',
    tests: [TEST],
  },
  {
    row: ROW,
    holds: 'a connector’s host counts as one that has a credential, over plain HTTP',
    file: 'sidecar/exchange/plain_host.ts',
    text: ' || policy.connectors.hosts.has(host);',
    replacement: ';',
    tests: [TEST],
  },
  {
    row: '403 `non_connect_proxy_request`',
    holds: 'a request is forwarded over plain HTTP only to a host that the session allows for it',
    file: REACH,
    text: 'plainHttp === null || !allowsHost(plainHttp.allowed, host)',
    replacement: 'plainHttp === null',
    tests: [TEST],
  },
  {
    row: '403 `non_connect_proxy_request`',
    holds: 'a step of a plan sends nothing over plain HTTP, whatever its session may',
    file: REACH,
    text: 'if (reach !== undefined || selfTest === true ||',
    replacement: 'if (selfTest === true ||',
    tests: [TEST],
  },
  {
    row: '403 `non_connect_proxy_request`',
    holds: 'each request of a connection over plain HTTP is checked for its own host',
    file: TUNNEL,
    text: ' || target.value.host !== host',
    replacement: '',
    tests: [TEST],
  },
  {
    row: '407 `proxy_authentication_required`',
    holds: 'each request of a connection over plain HTTP has the session’s token',
    file: TUNNEL,
    text: 'return user.ok && user.value === session;',
    replacement: 'return user.ok || session.id !== "";',
    tests: [TEST],
  },
  {
    row: '403 `connect_port_not_allowed`',
    holds: 'plain HTTP goes to port 80',
    file: REACH,
    text: 'if (port === PLAIN_PORT) return ok(undefined);',
    replacement: 'return ok(undefined);',
    tests: [TEST],
  },
  {
    row: '421 `authority_mismatch`',
    holds: 'a request over plain HTTP names no other host or port than its URL',
    file: TUNNEL,
    text: '    limited: true,\n',
    replacement: '',
    tests: [TEST],
  },
  {
    row: '403 `egress_address_not_allowed`',
    holds: 'a sealed session reaches private addresses over plain HTTP only at hosts that were typed for it',
    file: REACH,
    text: 'return sealed === true && plainHttp?.named.has(host) !== true;',
    replacement: 'return false;',
    tests: [TEST],
  },
  {
    row: '403 `egress_address_not_allowed`',
    holds: 'the addresses of a name are checked for plain HTTP too',
    file: 'sidecar/upstream/plain_dialer.ts',
    text: '          ...(denied === null ? {} : { lookup: lookupWithout(denied) }),\n',
    replacement: '',
    tests: [DIALER_TEST, TEST],
  },
  {
    row: '403 `egress_address_not_allowed`',
    holds: 'plain HTTP does not lead to this machine by a name',
    file: 'sidecar/upstream/plain_dialer.ts',
    text: 'checked ?? (pinned === undefined ? notThisMachine(use) : null)',
    replacement: 'checked',
    tests: [DIALER_TEST],
  },
  {
    row: ROW,
    holds: 'a login asks for its account over TLS only',
    file: 'sidecar/exchange/plain_host.ts',
    text: ' || login?.account?.host === host',
    replacement: '',
    tests: [TEST],
  },
  {
    row: '403 `egress_address_not_allowed`',
    holds: 'the upstream proxy is not asked over plain HTTP for a name that could be private',
    file: 'sidecar/upstream/plain_dialer.ts',
    text: 'if (checked !== null && isIP(address) === 0 && !proxy.isPublicOnly) {',
    replacement: 'if (checked !== null && isIP(address) !== 0 && !proxy.isPublicOnly) {',
    tests: [DIALER_TEST],
  },
  {
    row: '403 `non_connect_proxy_request`',
    holds: 'a restored session has its hosts for plain HTTP',
    file: 'sidecar/session/saved_session.ts',
    text: '    plainHttp: session.plainHttpList,\n',
    replacement: '',
    tests: ['sidecar/session/session_keeper.test.ts'],
  },
  {
    row: '403 `non_connect_proxy_request`',
    holds: 'a plan gets no hosts for plain HTTP',
    file: 'sidecar/local_api/session_routes.ts',
    text: `return err(localError('invalid_input', "plain_http_hosts: a plan's steps send nothing over plain http"));`,
    replacement: 'return ok(null);',
    tests: ['sidecar/local_api/sandbox_routes.test.ts'],
  },
  {
    row: '403 `egress_host_not_allowed`',
    holds: 'a folder’s hosts for plain HTTP are none of a sealed session’s',
    file: 'cli/launch/hosts/allowed_hosts.ts',
    text: 'listStored(place).filter((entry) => !entry.startsWith(PLAIN))',
    replacement: 'listStored(place).map(withoutPlain)',
    tests: ['cli/launch/launch_command.test.ts', 'cli/launch/run_command.test.ts'],
  },
];
