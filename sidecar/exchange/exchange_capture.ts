import { FIRST_SECONDS, FORM_TYPE, type LoginReply, readLoginReply } from '../../shared/connect/login_reply.ts';
import { isLoginGrant, isRefreshGrant, loginCode } from '../../shared/connect/token_request.ts';
import { compileScrubPatterns } from '../../shared/inject/scrub/patterns.ts';
import { LOGIN_CAPTURED } from '../../shared/model/audit_event.ts';
import { connectorOfVaultPath, programOfLogin } from '../../shared/model/connector.ts';
import type { HostBinding } from '../../shared/model/host_binding.ts';
import { refusal } from '../../shared/model/refusal.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { fieldValues } from '../../shared/net/http/http1_head.ts';
import type { Policy } from '../../shared/resolve/resolve.ts';
import { readWholeBody } from '../connector/whole_body.ts';
import type { SessionLogin } from '../ports.ts';
import { answerTokenRequest, forwardOwn, loginPlaceholders, outgoingOwn, readOwnRequest } from './exchange_login.ts';
import type { ExchangePorts, ExchangeTunnel } from './exchange_ports.ts';
import { forward } from './forward.ts';
import type { Reply } from './outgoing.ts';
import type { Incoming } from './incoming.ts';
import { abandon, type Facts, type Outcome, refuse, replyLocally, replyWith } from './outcome.ts';
import { bodyText, type RequestBody } from './request_body.ts';
import { forwardContext } from './send_credentialed.ts';

/** A reply with tokens is a few KiB. */
const MAX_REPLY_BYTES = 65_536;
/** Nothing is masked: the reply is not passed on. */
const NO_SECRETS = compileScrubPatterns([], new Uint32Array(4));

/** Whether a request is the one for tokens, in a session that was started for this login. */
export function isTokenRequest(login: SessionLogin, { host, method, path }: Facts): boolean {
  return method === 'POST' && host === login.host && path === login.path;
}

/**
 * A request at the token URL, in the session of `svc login`. The request for the tokens of the new login is forwarded without a
 * credential; the tokens in its reply go to the control plane, and only then the program gets the reply, with placeholders. A
 * refresh is treated as in every session. The reply to any other request is passed on only if it has no tokens, because they would
 * be those of a login that svc does not understand. No credential is looked up.
 */
export async function exchangeCapture(
  incoming: Incoming,
  login: SessionLogin,
  policy: Policy,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const body = await readOwnRequest(incoming, facts, tunnel, ports);
  if (!body.ok) return body.error;
  try {
    const text = bodyText(body.value);
    if (!isLoginGrant(login, text)) {
      const placeholders = [login.placeholder, ...loginPlaceholders(policy, isOfProgram)];
      const request = { placeholders, clientId: login.clientId, seconds: FIRST_SECONDS };
      const forwardRest: typeof forwardOwn = isRefreshGrant(text)
        ? forwardOwn
        : (...args) => forwardWithoutTokens(login, ...args);
      return await answerTokenRequest(incoming, body.value, request, facts, tunnel, ports, forwardRest);
    }
    const begun = login.begin(loginCode(text));
    if (!begun.ok) return refuse(facts, begun.error, incoming, true);
    try {
      return await capture(incoming, body.value, login, facts, tunnel, ports);
    } finally {
      login.end();
    }
  } finally {
    body.value.buffered?.release();
  }
}

function isOfProgram({ path }: HostBinding['credential']): boolean {
  return programOfLogin(connectorOfVaultPath(path) ?? '') !== null;
}

async function capture(
  incoming: Incoming,
  body: RequestBody,
  login: SessionLogin,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const got = await requestTokens(login, incoming, body, facts, tunnel, ports);
  if (!got.ok) return got.error;
  const { status, type } = got.value;
  const { reply, ...tokens } = got.value.read;
  const held = await login.hold(tokens);
  if (!held.ok) return refuse(facts, held.error, incoming, true);
  return replyLocally(incoming, facts, reply, { kind: 'captured', reason: LOGIN_CAPTURED, status }, type);
}

async function forwardWithoutTokens(login: SessionLogin, ...request: Parameters<typeof forwardOwn>): Promise<Outcome> {
  const got = await requestTokens(login, ...request);
  if (!got.ok) return got.error;
  login.withhold();
  const [incoming, , facts] = request;
  const why = `the reply of ${facts.host} was withheld: it has tokens, and its request was not the one of this login`;
  return refuse(facts, refusal('upstream_invalid_reply', why), incoming, true);
}

/** Sends a request for tokens, and reads them from the reply. The error is the outcome if there are none. */
async function requestTokens(
  login: SessionLogin,
  incoming: Incoming,
  body: RequestBody,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Result<{ readonly read: LoginReply; readonly status: number; readonly type: ReplyType }, Outcome>> {
  const sent = await forward(outgoingOwn(incoming, body), {
    ...forwardContext(incoming, tunnel, ports, null),
    inForce: null,
  });
  if (!sent.ok) {
    // The provider may have redeemed the code.
    login.withhold();
    return err(tunnel.client.closed ? abandon(facts) : refuse(facts, sent.error, incoming, true));
  }
  const { status } = sent.value.head;
  // An error has no tokens (RFC 6749 section 5.2). A redirect could send the code to where no reply is captured.
  if (status < 200 || status > 399) return err(replyWith(incoming, facts, 'passthrough', sent.value, null));
  const text = await readReply(sent.value, tunnel, ports);
  const type = isForm(sent.value) ? FORM_TYPE : 'json';
  const read = status > 299 ? err('is a redirect') : readTokens(text, type, login.placeholder, ports.clock.now());
  if (status <= 299 && (!read.ok || (read.value !== null && tunnel.client.closed))) login.withhold();
  if (tunnel.client.closed) return err(abandon(facts));
  if (!read.ok) {
    const why = `the reply of ${facts.host} to this login was withheld: it ${read.error}`;
    return err(refuse(facts, refusal('upstream_invalid_reply', why), incoming, true));
  }
  if (read.value !== null) return ok({ read: read.value, status, type });
  return err(replyLocally(incoming, facts, text ?? '', { kind: 'replied', mediation: 'passthrough', status }, type));
}

type ReplyType = Parameters<typeof readLoginReply>[1];

function readTokens(
  text: string | null,
  type: ReplyType,
  placeholder: string,
  nowMs: number,
): ReturnType<typeof readLoginReply> {
  return text === null ? err('is too large or incomplete') : readLoginReply(text, type, placeholder, nowMs);
}

/** GitHub answers so, unless the request asks for JSON. */
function isForm({ head }: Reply): boolean {
  const [type = ''] = fieldValues(head.fields, 'content-type');
  return type.split(';', 1)[0]?.trim().toLowerCase() === 'application/x-www-form-urlencoded';
}

/** The body as text; null if it is too large or not complete. Its connection is not used again. */
export async function readReply(reply: Reply, tunnel: ExchangeTunnel, ports: ExchangePorts): Promise<string | null> {
  const limits = { ...ports.limits, maxRunReplyBytes: MAX_REPLY_BYTES };
  try {
    const body = await readWholeBody(reply, NO_SECRETS, { budget: ports.budget, limits });
    return body.ok ? body.value.body.toString('utf8') : null;
  } finally {
    tunnel.client.onFinished(null);
    reply.upstream.destroy();
  }
}
