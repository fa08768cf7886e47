import type { Mutation } from './mutation.ts';

const ROW = '403 `egress_host_not_allowed`';
const REACH = 'sidecar/tunnel/sealed_reach.ts';
const REACH_TEST = 'sidecar/tunnel/sealed_reach.test.ts';
const PREPARE = 'sidecar/exchange/prepare_request.ts';
const REFUSALS = 'sidecar/tunnel/session_refusals.ts';
const REFUSALS_TEST = 'sidecar/tunnel/session_refusals.test.ts';
const ADMITTED = 'shared/resolve/admitted_host.ts';
const ADMITTED_TEST = 'shared/resolve/admitted_host.test.ts';
const ROUTES = 'sidecar/local_api/session_routes.ts';
const ROUTES_TEST = 'sidecar/local_api/sandbox_routes.test.ts';
const ALLOW = 'cli/launch/allow_command.ts';
const HOSTS = 'cli/launch/allowed_hosts.ts';
const ALLOW_TEST = 'cli/launch/allow_command.test.ts';
const LAUNCH_TEST = 'cli/launch/launch_command.test.ts';

/** What keeps a sealed session at the hosts that are bound or allowed (decision 0062). */
export const EGRESS_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'a session with an allow list reaches no other host',
    file: REACH,
    text: "return err(refusal('egress_host_not_allowed', message));",
    replacement: 'return message === "" ? err(refusal("egress_host_not_allowed", message)) : ok(undefined);',
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'without a policy nothing counts as bound',
    file: REACH,
    text: '  if (!policy.ok) return policy;\n',
    replacement: '  if (!policy.ok) return ok(undefined);\n',
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'a sealed session without a list reaches only bound hosts',
    file: 'sidecar/session/session.ts',
    text: "(facts.sandbox?.egress === 'sealed' ? NOTHING_MORE : null)",
    replacement: 'null',
    tests: [ROUTES_TEST],
  },
  {
    row: ROW,
    holds: 'a change of the policy closes open tunnels to hosts that nothing admits any more',
    file: REACH,
    text: 'const stop = ports.policy.onChanged(look);',
    replacement: 'const stop = ports.policy.onChanged(() => undefined);',
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'a request in a tunnel names no other host, also on passthrough (421 `authority_mismatch`)',
    file: 'sidecar/exchange/exchange.ts',
    text: 'tunnel.limited ? checkAuthority(incoming, tunnel.host, tunnel.sni) : ok(undefined)',
    replacement: 'tunnel.limited ? ok(undefined) : ok(undefined)',
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'a step’s tunnel names no other host either',
    file: REACH,
    text: 'return reach !== undefined || (allowed ?? null) !== null;',
    replacement: 'return reach === undefined && (allowed ?? null) !== null;',
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'a tunnel that is limited to its host asks for no upgrade but a WebSocket’s',
    file: PREPARE,
    text: 'UPGRADE_ONLY.has(name)) && !isWebSocketUpgrade(head);',
    replacement: 'UPGRADE_ONLY.has(name)) && isWebSocketUpgrade(head) && false;',
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'a WebSocket’s handshake offers no other protocol beside it',
    file: PREPARE,
    text: 'protocols.every((protocol)',
    replacement: 'protocols.some((protocol)',
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'a 101 switches such a tunnel to no other protocol',
    file: 'sidecar/exchange/forward.ts',
    text: "upgrade === 'websocket' && !namesOnlyWebSocket(head.fields)",
    replacement: "upgrade === 'websocket' && head.fields.length === 0",
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'a request without a Host header is for the host of such a tunnel',
    file: PREPARE,
    text: "authority === null ? [headerField('Host', host)] : [];\n  return { ...head, fields",
    replacement: 'authority === null ? [] : [];\n  return { ...head, fields',
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'a connector without its credential opens no host',
    file: ADMITTED,
    text: 'isStored(credential) && ',
    replacement: '',
    tests: [ADMITTED_TEST],
  },
  {
    row: ROW,
    holds: 'a connector opens only hosts of its own',
    file: ADMITTED,
    text: 'spec.operations.some((operation) => operationHosts(spec, operation).includes(host))',
    replacement: 'spec.operations.length > 0',
    tests: [ADMITTED_TEST],
  },
  {
    row: ROW,
    holds: 'a restored session has its list',
    file: 'sidecar/session/saved_session.ts',
    text: '    allowList: session.allowList,\n',
    replacement: '',
    tests: ['sidecar/session/session_keeper.test.ts'],
  },
  {
    row: ROW,
    holds: 'a list that the egress would ignore is refused',
    file: ROUTES,
    text: "if (sandbox !== undefined && sandbox.egress !== 'sealed') {",
    replacement: "if (sandbox !== undefined && sandbox.mode !== 'docker') {",
    tests: [ROUTES_TEST],
  },
  {
    row: ROW,
    holds: 'a plan gets no hosts besides its lock',
    file: ROUTES,
    text: 'const message = "allowed_hosts: a plan\'s steps reach exactly the hosts of their lock: add the host to the plan";\n    return err(',
    replacement: 'const message = "";\n    if (message === undefined) return err(',
    tests: [ROUTES_TEST],
  },
  {
    row: ROW,
    holds: 'refused CONNECTs of a session do not fill the audit spool',
    file: 'sidecar/tunnel/tunnel.ts',
    text: 'ports.refusals.record(session.id, event);',
    replacement: 'ports.audit.record(event);',
    tests: [REACH_TEST],
  },
  {
    row: ROW,
    holds: 'an agent that tries many hosts does not fill it either',
    file: REFUSALS,
    text: 'else if (sums.size >= MOST_HOSTS) addOther',
    replacement: 'else if (sums.size < 0) addOther',
    tests: [REFUSALS_TEST],
  },
  {
    row: ROW,
    holds: 'a session’s counted refusals are recorded when it ends',
    file: 'sidecar/session/sessions.ts',
    text: '    this.#options.onClosed?.(session.id);\n',
    replacement: '',
    tests: ['sidecar/session/sessions.test.ts'],
  },
  {
    row: '403 `egress_address_not_allowed`',
    holds: 'only a host that was typed for the session may be private, not one of a list',
    file: 'cli/launch/allowed_hosts.ts',
    text: "const named = typed.filter((pattern) => !pattern.includes('*'));",
    replacement: "const named = [...typed, ...stored].filter((pattern) => !pattern.includes('*'));",
    tests: [LAUNCH_TEST],
  },
  {
    row: '403 `egress_address_not_allowed`',
    holds: 'a pattern names no host',
    file: REACH,
    text: 'allowed?.named.has(host) === true',
    replacement: '(allowed ?? null) !== null',
    tests: [REACH_TEST],
  },
  {
    row: 'svc allow',
    holds: 'nothing is allowed from inside a session',
    file: ALLOW,
    text: 'if (session === undefined && findLauncherAbove(home) === null) return;',
    replacement: 'if (session === undefined || session !== undefined) return;',
    tests: [ALLOW_TEST],
  },
  {
    row: 'svc allow',
    holds: 'nothing is allowed below the launcher of a session',
    file: ALLOW,
    text: ' && findLauncherAbove(home) === null',
    replacement: '',
    tests: [ALLOW_TEST],
  },
  {
    row: 'svc allow',
    holds: 'what a session tried is allowed only by a person at a terminal',
    file: ALLOW,
    text: '  if (!context.interactive) {',
    replacement: '  if (!context.interactive && print.json) {',
    tests: [ALLOW_TEST],
  },
  {
    row: 'svc allow',
    holds: 'how often an agent tried a host does not move it up in the list',
    file: 'cli/launch/refused_hosts.ts',
    text: '(a.host < b.host ? -1 : 1)',
    replacement: 'b.refused - a.refused',
    tests: [ALLOW_TEST],
  },
  {
    row: 'svc allow',
    holds: 'no answer allows hosts that the list does not show',
    file: ALLOW,
    text: "words[0] === 'all' && !isCut",
    replacement: "words[0] === 'all'",
    tests: [ALLOW_TEST],
  },
  {
    row: 'svc allow',
    holds: 'no list is stored with which a session could not start',
    file: ALLOW,
    text: 'if (!remove) refuseTooManyHosts(',
    replacement: 'if (remove) refuseTooManyHosts(',
    tests: [ALLOW_TEST],
  },
  {
    row: 'svc allow',
    holds: 'a list belongs to the real folder, not to a link',
    file: HOSTS,
    text: 'return realpathSync(path);',
    replacement: 'return path;',
    tests: [ALLOW_TEST],
  },
  {
    row: 'svc allow',
    holds: 'a launch gets the list of its own folder and those above it',
    file: HOSTS,
    text: 'const own = (folders[folder] ?? []).map((host) => ({ host, folder }));',
    replacement: 'const own = Object.values(folders).flatMap((all) => all.map((host) => ({ host, folder })));',
    tests: [ALLOW_TEST],
  },
];
