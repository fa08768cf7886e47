/** The forms of signing in, and of its ways. They are sent in walk_hosted.test.ts. */
export const SIGN_IN_FORMS: readonly string[] = [
  '/sign-up',
  '/sign-up/code',
  '/sign-in',
  '/auth/{provider}/link',
  '/identities/link',
  '/identities/remove',
];

/**
 * The forms that only a hosted control plane has a use for. The others are sent in mcp_client.test.ts, from the page of a
 * provider in saml_sign_in.test.ts, and in console_invitations.test.ts,
 * console_departure.test.ts, console_directory.test.ts, console_join_requests.test.ts and console_sharing.test.ts. The two of push
 * notifications need scripts: a browser's service worker gives what they send (push.test.ts).
 */
export const HOSTED_FORMS: readonly string[] = [
  ...SIGN_IN_FORMS,
  '/account/mcp-clients/{id}/end',
  '/auth/{provider}/acs',
  '/members/{id}/remove',
  '/enterprises/leave',
  '/enterprise/delete',
  '/account/delete',
  '/account/push',
  '/account/push/{id}/end',
  '/members/invite',
  '/members/invitations/{id}/revoke',
  '/invitations/{token}',
  '/enterprises/{id}/use',
  '/enterprises/{id}/merge',
  '/groups',
  '/groups/{id}/rename',
  '/groups/{id}/members',
  '/groups/{id}/members/{user}/remove',
  '/groups/{id}/delete',
  '/members/requests/{id}/accept',
  '/members/requests/{id}/decline',
  '/enterprises/{id}/ask',
  '/enterprises/requests/{id}/withdraw',
  '/directory/tokens',
  '/directory/tokens/{id}/revoke',
  '/shares',
  '/shares/{id}/accept',
  '/shares/{id}/decline',
  '/shares/{id}/end',
];
