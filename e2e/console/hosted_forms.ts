/** The forms that only a hosted control plane has somebody to send for. They are sent in walk_hosted.test.ts. */
export const HOSTED_FORMS: readonly string[] = [
  '/sign-up',
  '/sign-up/code',
  '/sign-in',
  '/auth/{provider}/link',
  '/identities/link',
  '/identities/remove',
];
