import type { Mutation } from './mutation.ts';

const WARNINGS = 'worker/services/connectors/connector_warnings.ts';
const INSTALL = 'worker/services/connectors/connectors.ts';
const PENDING = 'worker/services/connectors/pending_logins.ts';
const OF_PENDING = 'worker/pending_logins.test.ts';
const CAPTURE = 'sidecar/exchange/exchange_capture.ts';
const OF_CAPTURE = 'sidecar/tunnel/captured_login.test.ts';
const OF_ROUTES = 'sidecar/local_api/sandbox_routes.test.ts';
const LOGIN_BINDINGS = 'worker/services/bindings/login_bindings.test.ts';

/** Checks of the logins of programs: their connectors, and new ones that wait for a person (decisions 0065 and 0067). */
export const LOGIN_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Agents: own logins',
    holds: 'another version of a login loses the tokens if its access token would go to further hosts',
    file: WARNINGS,
    text: '!now.login.hosts.every((host) => hosts.includes(host)) ||',
    replacement: 'hosts.length === 0 ||',
    tests: [LOGIN_BINDINGS],
  },
  {
    row: 'Agents: own logins',
    holds: 'another version of a login loses the tokens if its access token would go to further paths',
    file: WARNINGS,
    text: '!now.login.paths.every((path) => isAtOrBelow(path, paths))',
    replacement: 'paths.length > 1_000',
    tests: [LOGIN_BINDINGS],
  },
  {
    row: 'Agents: own logins',
    holds: 'only the login of a program has a name below login/',
    file: INSTALL,
    text: '  if ((programOfLogin(fqn) !== null) === isLogin) return ok(undefined);\n',
    replacement: '  if (programOfLogin(fqn) !== null || !isLogin) return ok(undefined);\n',
    tests: [LOGIN_BINDINGS],
  },
  {
    row: 'Agents: new logins',
    holds: 'the tokens of a login are accepted once',
    file: PENDING,
    text: "    if (row?.state !== 'open') return err(loginNotFound(id));\n    const tokens",
    replacement: '    if (row === null) return err(loginNotFound(id));\n    const tokens',
    tests: [OF_PENDING],
  },
  {
    row: 'Agents: new logins',
    holds: 'tokens are accepted only if they are sealed for this login by this sidecar',
    file: PENDING,
    text: 'if (typ !== LOGIN_TOKENS_TYP || login !== id || sidecar !== sidecarId) return null;',
    replacement: 'if (typ === login && sidecar === sidecarId) return null;',
    tests: [OF_PENDING],
  },
  {
    row: 'Agents: new logins',
    holds: 'placeholders are not held as tokens',
    file: PENDING,
    text: "    if (await holdsPlaceholder(context, caller, tokens)) return err(unusable('has placeholders of svc and no tokens'));\n",
    replacement: '',
    tests: [OF_PENDING],
  },
  {
    row: 'Agents: new logins',
    holds: 'a connector gets the tokens of a login only if it has the program, the token URL and the client of it',
    file: PENDING,
    text: '  if (!isLoginOf(connector, login, caller)) {\n',
    replacement: '  if (!isLoginOf(connector, login, caller) && connectorId.length === 0) {\n',
    tests: [OF_PENDING],
  },
  {
    row: 'Agents: new logins',
    holds: 'a refresh token is not dropped by storing a login as a secret',
    file: PENDING,
    text: '  if (refresh_token !== null) {\n',
    replacement: '  if (refresh_token === path) {\n',
    tests: [OF_PENDING],
  },
  {
    row: 'Agents: new logins',
    holds: 'a login that waits ends after half an hour',
    file: 'worker/store/pending_logins.ts',
    text: 'and(eq(pendingLogins.id, id), eq(pendingLogins.userId, userId), gt(pendingLogins.expiresAt, nowSeconds))',
    replacement:
      'and(eq(pendingLogins.id, id), eq(pendingLogins.userId, userId), gt(pendingLogins.expiresAt, nowSeconds - 9e6))',
    tests: [OF_PENDING],
  },
  {
    row: 'Agents: new logins',
    holds: 'a login that waits is its own user’s only',
    file: 'worker/store/pending_logins.ts',
    text: 'and(eq(pendingLogins.id, id), eq(pendingLogins.userId, userId), gt(',
    replacement: 'and(eq(pendingLogins.id, id), gt(',
    tests: ['worker/foreign_tenant.test.ts'],
  },
  {
    row: 'Agents: new logins',
    holds: 'a program gets no reply to its login if the tokens could not be stored (`login_not_stored`)',
    file: CAPTURE,
    text: '  if (!held.ok) return refuse(facts, held.error, incoming, true);\n',
    replacement: '',
    tests: [OF_CAPTURE],
  },
  {
    row: 'Agents: new logins',
    holds: 'a session captures one login (`login_not_accepted`)',
    file: CAPTURE,
    text: '    if (!begun.ok) return refuse(facts, begun.error, incoming, true);\n',
    replacement: '',
    tests: [OF_CAPTURE],
  },
  {
    row: 'Agents: new logins',
    holds: 'a second login in a session makes the first one contested',
    file: 'sidecar/session/session_login.ts',
    text: "    this.#state = 'contested';\n",
    replacement: '',
    tests: [OF_CAPTURE],
  },
  {
    row: 'Agents: new logins',
    holds: 'a login is captured only in the session that was started for it',
    file: 'sidecar/tunnel/tunnel.ts',
    text: 'login: session.login ?? null',
    replacement: 'login: null',
    tests: [OF_CAPTURE],
  },
  {
    row: 'Agents: new logins',
    holds: 'only the grant of the program’s own client is captured',
    file: 'shared/connect/token_request.ts',
    text: " || fields.get('client_id') !== clientId) return false;",
    replacement: ') return false;',
    tests: [OF_CAPTURE],
  },
  {
    row: 'Agents: new logins',
    holds: 'a code without a verifier is not captured',
    file: 'shared/connect/token_request.ts',
    text: "  return wanted.fields.every((name) => (fields.get(name) ?? '') !== '');\n",
    replacement: '  return wanted.fields.length > 0;\n',
    tests: [OF_CAPTURE],
  },
  {
    row: 'Agents: new logins',
    holds: 'a reply that parsers read differently gives no tokens',
    file: 'shared/connect/login_reply.ts',
    text: '  if (!parsed.ok) return parsed;\n',
    replacement: "  if (!parsed.ok) return ok(replyOf(objectOf(JSON.parse(text)), [''], placeholder, nowMs));\n",
    tests: [OF_CAPTURE],
  },
  {
    row: 'Agents: new logins',
    holds: 'a program gets no text of the reply with a token in it',
    file: 'shared/connect/login_reply.ts',
    text: '  return tokens.some((token) => text.includes(token)) ? null : text;\n',
    replacement: '  return tokens.length === 0 ? null : text;\n',
    tests: [OF_CAPTURE],
  },
  {
    row: 'Agents: new logins',
    holds: 'a reply with too much in it is not read',
    file: CAPTURE,
    text: 'maxRunReplyBytes: MAX_REPLY_BYTES',
    replacement: 'maxRunReplyBytes: 1_000 * MAX_REPLY_BYTES',
    tests: [OF_CAPTURE],
  },
  {
    row: 'Agents: new logins',
    holds: 'the session of a login is not restored, because it would pass tokens on',
    file: 'sidecar/session/sessions.ts',
    text: '    if (session.login !== null) return;\n',
    replacement: '',
    tests: ['sidecar/session/session_keeper.test.ts'],
  },
  {
    row: 'Agents: new logins',
    holds: 'the session of a login ends with the login',
    file: 'sidecar/local_api/session_routes.ts',
    text: '  return Math.min(wanted ?? left, left);\n',
    replacement: '  return wanted ?? left;\n',
    tests: [OF_ROUTES],
  },
];
