/** The forms that only a hosted control plane has a use for. They are sent in walk_hosted.test.ts and mcp_client.test.ts. */
export const HOSTED_FORMS: readonly string[] = [
  '/sign-up',
  '/sign-up/code',
  '/sign-in',
  '/auth/{provider}/link',
  '/identities/link',
  '/identities/remove',
  '/account/mcp-clients/{id}/end',
];
