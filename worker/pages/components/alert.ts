import { html } from 'hono/html';
import type { Content, Html } from '../frame/html.ts';

type AlertKind = 'good' | 'warn' | 'bad' | 'info';

/** A message about a change or an error. Screen readers announce an error at once. */
export function alert(kind: AlertKind, content: Content): Html {
  return html`<div class="alert ${kind}" role="${kind === 'bad' ? 'alert' : 'status'}">${content}</div>`;
}

/** The message after a change. The query contains only a code; otherwise a link could make a page show any text. */
const DONE: Readonly<Record<string, Content>> = {
  secret_stored: 'The secret is stored. Its value is never shown again.',
  source_stored: 'The source is stored: its provider mints the value when a request needs it. Try it below.',
  secret_deleted: 'The secret is deleted.',
  service_connected: 'Connected. The credential is stored encrypted, and no page shows it again.',
  binding_created: 'The binding is in force.',
  binding_changed: 'The change is in force.',
  binding_deleted: 'The binding is deleted.',
  client_certificate_added: 'Its host gets the certificate from now on.',
  client_certificate_removed: 'The certificate is withdrawn, and its connections end.',
  tunnel_host_added: 'Connections to it are carried unread from now on.',
  tunnel_host_removed: 'Connections to it are intercepted again.',
  connector_installed: 'The connector is installed.',
  connector_removed: 'The connector is removed, with its credential.',
  connector_removed_tokens_valid:
    'The connector is removed, with its credential. Its tokens may stay valid at the provider: end the login in the settings of the account.',
  credential_stored: 'The credential is stored. Its value is never shown again.',
  credential_deleted: 'The credential is deleted.',
  credential_deleted_tokens_valid:
    'The credential is deleted. Its tokens may stay valid at the provider: end the login in the settings of the account.',
  sidecar_revoked: 'The sidecar is revoked: its next call is refused.',
  signed_out: 'It is signed out: its next call is refused.',
  push_on: 'This browser tells you of requests that need your approval.',
  push_off: 'That browser tells you no more.',
  token_revoked: 'The token is revoked: its next call is refused.',
  mcp_client_ended: 'The client is disconnected: its next call is refused.',
  member_changed: 'The role is changed.',
  member_suspended:
    'The member is suspended and signed out everywhere, and its sidecars, personal tokens and grants have ended.',
  member_resumed: 'The member may sign in again.',
  member_removed:
    'The member is removed: what was its own is deleted, and its sign-ins, tokens and sidecars have ended.',
  join_accepted: 'The person is a member.',
  join_declined: 'The request is declined.',
  join_withdrawn: 'Your request is taken back.',
  asked_to_join: 'You have asked: an admin of the enterprise decides.',
  joined: 'You are a member, because its directory expected you: switch to it below.',
  invitation_revoked: 'The invitation is revoked: its link no longer works.',
  group_created: 'The group is created: put people in.',
  group_renamed: 'The group has its new name.',
  group_deleted: 'The group is deleted, and what was shared with it is no longer shared.',
  group_member_added: 'The member is in the group.',
  group_member_removed: 'The member is out of the group: its sidecars lose what is shared with it within seconds.',
  shared: 'The binding is shared.',
  merged: 'Everything is moved here, and is your own.',
  share_accepted: 'Accepted: your sidecars use it within seconds, and the list says if another binding comes first.',
  share_declined: 'Your acceptance is taken back: your sidecars stop using it within seconds.',
  share_ended: 'The share has ended: nobody uses your binding by it any more.',
  events_removed: 'The events are removed, and the log records who did it.',
  events_partly_removed: html`The oldest of them are removed. There are more: repeat it, or remove all at once with
    <code data-command>svc audit prune</code>.`,
  events_removed_but_broken: 'Removed, but not from the chains that do not verify: verify the chain to see where.',
  view_saved: 'The view is saved.',
  view_forgotten: 'The view is forgotten.',
  settings_changed: 'The settings are in force.',
  approved: 'Approved: one identical request may go through within fifteen minutes.',
  granted: 'Approved, and further requests like it are allowed until the grant ends. Grants lists it.',
  approved_once:
    'Approved: one identical request may go through within fifteen minutes. Others allow no more than that.',
  grant_revoked: 'The grant is revoked: the next request asks again.',
  was_decided:
    'That request was decided before, or nobody decided in time: nothing was changed. All shows what became of it.',
  denied: 'Denied: identical requests are refused for fifteen minutes.',
  mcp_installed: 'The server is installed. Nothing of it runs yet.',
  mcp_was_installed: 'The server was already installed and is unchanged.',
  mcp_enabled: 'The server is enabled.',
  mcp_disabled: 'The server is disabled: gateways stop it.',
  mcp_tools_accepted: 'Accepted: gateways list and call them from now on.',
  approval_rule_added: 'The rule holds from now on, also for requests that wait. What was allowed before is over.',
  approval_rule_removed: 'The rule is removed, and what was allowed under it is over.',
  partly_approved: 'You approved it. It waits for somebody else too.',
  mcp_rules_saved: 'The rules hold from now on: gateways have them with their next policy.',
  mcp_tools_saved: 'The tools are saved.',
  mcp_credential_stored: 'Stored. The value is never shown again.',
  mcp_credential_removed: 'The stored value is deleted.',
  mcp_upgraded: 'The server is updated. Its earlier configuration is kept below.',
  mcp_rolled_back: 'The earlier configuration is in force again.',
  connector_authorised: 'It is authorised: its operations are sent with the credential from now on.',
  mcp_created: 'The server is registered. Nothing of it runs yet.',
  mcp_saved: 'The configuration is saved. A machine asks for consent again if the command changed.',
  mcp_signed_in: 'You are signed in: gateways receive access tokens from now on.',
  mcp_sign_in_forgotten: 'The sign-in is deleted with its tokens, and gateways receive none.',
  mcp_deleted: 'The server and its credentials are deleted.',
};

/** The message of `?done=`; nothing for an unknown code. */
export function flash(done: string | undefined): Html | string {
  const message = done === undefined || !Object.hasOwn(DONE, done) ? undefined : DONE[done];
  return message === undefined ? '' : alert('good', message);
}

/** In the query of any page: a form of it was sent after the sign-in had ended. */
export const NOT_SENT = 'not_sent';

export function notSentAlert(): Html {
  return alert('warn', 'Nothing was changed: your sign-in had ended when you sent the form. Send it again.');
}
