import type { Mutation } from '../mutation.ts';

const ROW = 'Upstream proxy';
const DIALER = 'sidecar/upstream/dialer.ts';
const DIAL = 'machine/connection/dial_through_proxy.ts';
const SETTING = 'shared/net/upstream_proxy.ts';
const NO_PROXY = 'shared/net/no_proxy.ts';
const OUTBOUND = 'worker/entries/node_outbound.ts';
const PROXIED = 'sidecar/upstream/proxied_dial.test.ts';
const SETTING_TEST = 'shared/net/upstream_proxy.test.ts';
const NO_PROXY_TEST = 'shared/net/no_proxy.test.ts';
const AGENT_TEST = 'machine/connection/proxy_agent.test.ts';
const OUTBOUND_TEST = 'worker/entries/node_outbound.test.ts';

/** The checks of connections through a company's proxy (decision 0069). */
export const UPSTREAM_PROXY_MUTATIONS: readonly Mutation[] = [
  {
    row: '502 `upstream_proxy_failed`',
    holds: 'what the upstream proxy refuses has its own code',
    file: 'sidecar/upstream/proxied_dial.ts',
    text: "refusal('upstream_proxy_failed',",
    replacement: "refusal('upstream_unreachable',",
    tests: [PROXIED],
  },
  {
    row: ROW,
    holds: 'no connection of the data plane is dialled past the proxy',
    file: DIALER,
    text: 'if (proxy === null) return dialTls(null, timeoutSeconds);',
    replacement: 'if (proxy === null || pinned === undefined) return dialTls(null, timeoutSeconds);',
    tests: [PROXIED],
  },
  {
    row: ROW,
    holds: 'a name that the proxy resolves is refused where only public addresses are allowed',
    file: DIALER,
    text: 'if (proxy !== null && denied !== null && isIP(address) === 0 && !proxy.isPublicOnly) {',
    replacement: 'if (proxy !== null && proxy.port === 0 && denied !== null) {',
    tests: [PROXIED],
  },
  {
    row: ROW,
    holds: 'the proxy and the host have one time limit',
    file: 'sidecar/upstream/proxied_dial.ts',
    text: 'Math.max(0, timeoutSeconds - (performance.now() - began) / 1000)',
    replacement: '600 + timeoutSeconds - began',
    tests: [PROXIED],
  },
  {
    row: ROW,
    holds: 'a closed tunnel closes its connection to the proxy',
    file: DIAL,
    text: 'return { connected, cancel: () => void socket.destroy() };',
    replacement: 'return { connected, cancel: () => undefined };',
    tests: [PROXIED],
  },
  {
    row: ROW,
    holds: 'a proxy that does not answer is given up',
    file: DIAL,
    text: 'settle(err(noReplyInTime(isConnected))), timeoutMs)',
    replacement: 'settle(err(noReplyInTime(isConnected))), timeoutMs * 1000)',
    tests: [PROXIED],
  },
  {
    row: ROW,
    holds: 'bytes after the head of the reply are the host’s',
    file: DIAL,
    text: 'if (opened.value.rest.length > 0) socket.unshift(opened.value.rest);',
    replacement: '',
    tests: [PROXIED],
  },
  {
    row: ROW,
    holds: 'the reply to CONNECT is limited',
    file: SETTING,
    text: 'if (sent > MAX_REPLY_BYTES)',
    replacement: 'if (sent > MAX_REPLY_BYTES * 1000)',
    tests: [SETTING_TEST],
  },
  {
    row: ROW,
    holds: 'only a 2xx status opens a connection',
    file: SETTING,
    text: 'if (status >= 300) return',
    replacement: 'if (status >= 400) return',
    tests: [SETTING_TEST],
  },
  {
    row: ROW,
    holds: 'the proxy of a session is not an upstream proxy',
    file: SETTING,
    text: "return text !== undefined && text !== '' &&",
    replacement: "return text !== undefined && text !== '' || text !== undefined &&",
    tests: [SETTING_TEST],
  },
  {
    row: ROW,
    holds: 'this machine is never called through the proxy',
    file: SETTING,
    text: 'return !LOOPBACK.test(host) &&',
    replacement: 'return',
    tests: [SETTING_TEST],
  },
  {
    row: ROW,
    holds: 'NO_PROXY exempts whole labels of a name only',
    file: NO_PROXY,
    text: 'return host === form.name || host.endsWith(`.${form.name}`);',
    replacement: 'return host.endsWith(form.name);',
    tests: [NO_PROXY_TEST],
  },
  {
    row: ROW,
    holds: 'a command inherits no NO_PROXY entry that covers a bound host',
    file: NO_PROXY,
    text: "if (pattern.kind === 'exact') return name.endsWith(form.name);",
    replacement: "if (pattern.kind === 'exact') return name === form.name;",
    tests: [NO_PROXY_TEST],
  },
  {
    row: ROW,
    holds: 'a NO_PROXY entry that is not understood is not inherited',
    file: NO_PROXY,
    text: "if (form === null || form.kind === 'every') return true;",
    replacement: "if (form === null || form.kind === 'every') return false;",
    tests: [NO_PROXY_TEST],
  },
  {
    row: ROW,
    holds: 'a login session keeps no NO_PROXY entry',
    file: 'cli/launch/hosts/run_reach.ts',
    text: 'if (login !== undefined || allowList !== undefined || isBoxed(call, wanted)) return Promise.resolve([]);',
    replacement: 'if (allowList !== undefined || isBoxed(call, wanted)) return Promise.resolve([]);',
    tests: ['cli/agents/capture_login.test.ts'],
  },
  {
    row: ROW,
    holds: 'the channel and the command line go through the proxy',
    file: 'machine/connection/proxy_agent.ts',
    text: 'if (!goesThrough(this.#proxy, target)) return',
    replacement: 'if (target.port !== 0) return',
    tests: [AGENT_TEST],
  },
  {
    row: ROW,
    holds: 'a remote MCP server of a hosted control plane is not called by a name that the proxy resolves',
    file: 'gateway/servers/remote_fetch.ts',
    text: 'if (isUnchecked(options, url)) throw new UncheckedAddress();',
    replacement: '',
    tests: ['gateway/servers/remote_fetch.test.ts'],
  },
  {
    row: ROW,
    holds: 'the sidecar does not start with itself as the upstream proxy',
    file: 'sidecar/config.ts',
    text: 'return isLoopbackHostname(host) && port === ownPort',
    replacement: 'return isLoopbackHostname(host) && port === -1',
    tests: ['sidecar/config.test.ts'],
  },
  {
    row: ROW,
    holds: 'a hosted control plane sends no name to the proxy whose address it cannot check',
    file: OUTBOUND,
    text: 'if (checksAddress(options, target.host) && !proxy.isPublicOnly) throw new UncheckedAddress(target);',
    replacement: '',
    tests: [OUTBOUND_TEST],
  },
  {
    row: ROW,
    holds: 'only a named host of a hosted control plane may be private',
    file: OUTBOUND,
    text: 'return !isLocal && !privateHosts.includes(host);',
    replacement: 'return !isLocal && privateHosts.length === 0;',
    tests: [OUTBOUND_TEST],
  },
];
