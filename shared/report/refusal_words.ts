import type { RefusalReason } from '../model/refusal.ts';

/** One entry for every reason, checked by the compiler. */
const REASONS: { readonly [R in RefusalReason]: string } = {
  proxy_authentication_required: 'The client gave the proxy no valid session and token.',
  non_connect_proxy_request: 'This was a plain HTTP request, and the session does not allow those to this host.',
  plain_http_bound_host:
    'Plain HTTP is never forwarded to a host that has a binding or a connector: its credential would travel in clear.',
  invalid_connect_target: 'The target of the CONNECT request is not valid.',
  connect_port_not_allowed:
    'The proxy connects to another port than 443 only where a binding, a connector, the plan or the session names it.',
  step_scope_host_denied:
    'The plan’s lock does not allow this host for the step, or the host is not to be intercepted, which no step reaches.',
  egress_host_not_allowed: 'The session reaches only bound and allowed hosts, and this is neither.',
  too_many_tunnels: 'The session has reached its limit of open tunnels.',
  session_ca_unavailable: 'The session’s certificate authority is missing, so TLS was impossible.',
  invalid_request: 'The tunnel’s content was not a valid HTTP request.',
  ambiguous_target: 'Servers could interpret this request in different ways, so it was not sent.',
  authority_mismatch: 'The request, or the client’s TLS handshake, named another host than its tunnel.',
  head_too_large: 'The head of the request was larger than the limit.',
  host_not_allowed: 'The host is not an allowed host of the binding.',
  account_not_chosen: 'The request asked for another account than the session chose for this host.',
  effect_not_allowed: 'The binding is read-only, and the method may write.',
  borrow_not_consented: 'The credential is borrowed, and nobody on that machine consented to give it to this request.',
  request_limit_reached:
    'A limit of the binding or of the session was reached on this machine: of requests, or of bytes.',
  binding_paused: 'Too many replies of this session contained the credential, so the binding is paused for it.',
  body_too_large: 'The body was larger than a request with a credential may have.',
  credential_unavailable: 'The credential is not stored, or was not retrieved in time.',
  control_plane_unavailable: 'The control plane was unreachable, and nothing is sent without it.',
  snapshot_expired: 'The sidecar’s policy is too old: it has not reached the control plane for a day.',
  connector_specs_invalid: 'The connectors could not be read, so no request could be matched safely.',
  reauthorisation_required: 'The connector’s authorisation has ended: authorise it again.',
  approval_required: 'Nobody approved the request while it was held.',
  approval_denied: 'Somebody denied this request.',
  graphql_unreadable: 'The GraphQL request is ambiguous, so it was not sent.',
  graphql_operation_not_allowed: 'The GraphQL document is not an operation of the connector, or contains several.',
  json_unreadable: 'Servers could read the JSON body in more than one way, so it was not sent.',
  json_operation_not_allowed: 'The JSON body is not that of an operation of the connector, or of several.',
  placeholder_not_accepted: 'The request held a placeholder of svc and was no refresh of its login.',
  login_not_stored: 'The tokens of a login could not be stored, so the program did not get the reply.',
  login_not_accepted: 'The session was started for one login and had its tokens, so it asked for no others.',
  audit_unavailable: 'It could not be recorded, and nothing is sent without a record.',
  signing_form_unsupported: 'The client used a form of signature that cannot be re-signed.',
  passthrough_target_not_allowed: 'The target is a private address, which passthrough refuses.',
  egress_address_not_allowed:
    'The name resolves to a private address or to this machine, or a proxy resolves it, so a sealed session reaches it only as a named host.',
  upstream_proxy_failed: 'The upstream proxy did not open a connection to the host.',
  upstream_unreachable: 'The upstream could not be reached.',
  upstream_tls_failed:
    'The TLS connection failed: the upstream’s certificate could not be verified, or it wants another client certificate.',
  upstream_invalid_reply: 'The upstream’s reply was not valid HTTP.',
};

/** Why a request was refused, as a sentence; null for another reason, such as that of a newer sidecar. */
export function refusalWords(reason: string): string | null {
  return isKnown(reason) ? REASONS[reason] : null;
}

function isKnown(reason: string): reason is RefusalReason {
  return Object.hasOwn(REASONS, reason);
}
