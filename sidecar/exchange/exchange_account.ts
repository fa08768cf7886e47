import { accountQueryBody, accountReply, isAccountQuery, readAccountName } from '../../shared/connect/account_query.ts';
import { ACCOUNT_ASKED } from '../../shared/model/audit_event.ts';
import { refusal } from '../../shared/model/refusal.ts';
import type { Secret } from '../../shared/model/secret.ts';
import { fieldValues, headerField } from '../../shared/net/http/http1_head.ts';
import { authorityField } from '../../shared/net/http/http2_head.ts';
import type { SessionLogin } from '../ports.ts';
import { readReply } from './exchange_capture.ts';
import { readOwnRequest } from './exchange_login.ts';
import type { ExchangePorts, ExchangeTunnel } from './exchange_ports.ts';
import { forward } from './forward.ts';
import type { Incoming } from './incoming.ts';
import { abandon, type Facts, type Outcome, refuse, replyLocally } from './outcome.ts';
import type { Outgoing } from './outgoing.ts';
import { bodyText } from './request_body.ts';
import { forwardContext } from './send_credentialed.ts';

/** Shares no connection with other requests of the session. */
const ACCOUNT_LANE = 'login';

/** Whether a request may be the program's question whose login it has, in the session that has captured the login's tokens. */
export function mayAskForAccount(
  { account, placeholder, state }: SessionLogin,
  { head, target }: Incoming,
  facts: Facts,
) {
  if (account === null || state !== 'held') return false;
  if (facts.method !== 'POST' || facts.host !== account.host || facts.path !== account.path) return false;
  const [authorization = '', ...more] = fieldValues(head.fields, 'authorization');
  const presented = /^(?:token|bearer) (\S+)$/i.exec(authorization)?.[1];
  return target.query === null && more.length === 0 && presented === placeholder;
}

/**
 * Answers the program's question whose login it has. The sidecar asks the provider itself: with the new token, in a request of
 * which the program wrote nothing, and of the reply the program gets only the user's name. Any other body is refused.
 */
export async function exchangeAccount(
  incoming: Incoming,
  login: SessionLogin,
  facts: Facts,
  tunnel: ExchangeTunnel,
  ports: ExchangePorts,
): Promise<Outcome> {
  const body = await readOwnRequest(incoming, facts, tunnel, ports);
  if (!body.ok) return body.error;
  const { account } = login;
  const isAsked = account !== null && isAccountQuery(account, bodyText(body.value));
  body.value.buffered?.release();
  if (!isAsked) {
    const message = `during a login the placeholder is accepted at ${facts.host} for one question only: whose login it is`;
    return refuse(facts, refusal('placeholder_not_accepted', message), incoming, true);
  }
  const token = login.takeForAccount();
  if (!token.ok) return refuse(facts, token.error, incoming, true);
  const asked = outgoing(account, token.value, incoming);
  const sent = await forward(asked, {
    ...forwardContext(incoming, tunnel, ports, null),
    onInterim: null,
    inForce: null,
  });
  tunnel.lanes.keepToTunnel(ACCOUNT_LANE);
  if (!sent.ok) return tunnel.client.closed ? abandon(facts) : refuse(facts, sent.error, incoming, true);
  const { status } = sent.value.head;
  const text = await readReply(sent.value, tunnel, ports);
  const name = status === 200 && text !== null ? readAccountName(text) : null;
  if (name === null) {
    const message = `${facts.host} did not say whose login this is (status ${status})`;
    return refuse(facts, refusal('upstream_invalid_reply', message), incoming, true);
  }
  login.nameAccount(name);
  return replyLocally(incoming, facts, accountReply(name), { kind: 'captured', reason: ACCOUNT_ASKED, status });
}

/** The whole request, written here, in the version of the tunnel. */
function outgoing(
  account: NonNullable<SessionLogin['account']>,
  token: Secret,
  { head: { version } }: Incoming,
): Outgoing {
  const body = Buffer.from(accountQueryBody(account));
  const isHttp2 = version === '2';
  const fields = [
    isHttp2 ? authorityField(account.host) : headerField('Host', account.host),
    headerField('Authorization', `Bearer ${token.reveal()}`),
    headerField('User-Agent', 'svc'),
    headerField('Accept', 'application/json'),
    headerField('Content-Type', 'application/json'),
    headerField('Content-Length', String(body.byteLength)),
    ...(isHttp2 ? [] : [headerField('Connection', 'close')]),
  ];
  return {
    head: {
      method: 'POST',
      target: account.path,
      version: isHttp2 ? '2' : '1.1',
      fields,
      neverIndexed: ['authorization'],
    },
    raw: null,
    body: { kind: 'bytes', chunks: [body] },
    upgrade: 'none',
    lane: ACCOUNT_LANE,
    credential: token,
  };
}
