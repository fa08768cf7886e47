import type { Mutation } from '../mutation.ts';

const PROVIDERS = 'worker/sign_in/provider_sign_in.test.ts';
const HOSTILE_PROVIDER = 'worker/sign_in/hostile_provider.test.ts';
const ENTERPRISES = 'worker/sign_in/enterprise_sign_in.test.ts';
const SAME_ORIGIN = 'worker/routes/api/same_origin.test.ts';
const ACCESS_TOKENS = 'worker/tokens/access_tokens.test.ts';
const PERSONAL_TOKENS = 'worker/tokens/personal_tokens.test.ts';
const DEVICE_CODES = 'worker/tokens/device_codes.test.ts';
const FLOWS = 'worker/sign_in/flows.ts';

/** Checks of a hosted control plane (design sections 7 and 10). */
export const HOSTED_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Hosted: sign-in',
    holds: 'an ID token is signed by a key of its issuer',
    file: 'worker/sign_in/oidc.ts',
    text: '  await verifySignature(settings, documents, reply);\n',
    replacement: '',
    tests: [HOSTILE_PROVIDER],
  },
  {
    row: 'Hosted: sign-in',
    holds: 'an ID token belongs to this sign-in',
    file: 'worker/sign_in/oidc.ts',
    text: 'expectedNonce: kept.nonce, ',
    replacement: '',
    tests: [HOSTILE_PROVIDER],
  },
  {
    row: 'Hosted: sign-in',
    holds: 'a sign-in returns to the callback URL that it began with',
    file: FLOWS,
    text: ' && flow.redirectUrl === answer.redirectURL',
    replacement: '',
    tests: [PROVIDERS],
  },
  {
    row: 'Hosted: sign-in',
    holds: 'a sign-in returns only once',
    file: FLOWS,
    text: 'if (!taken.ok) return err(expiredError());',
    replacement: '',
    tests: [PROVIDERS],
  },
  {
    row: 'Hosted: sign-in',
    holds: 'a subject is short and has only printable characters',
    file: FLOWS,
    text: 'if (!isSubject(identity.value.subject)) return err(noSubjectError(provider));',
    replacement: '',
    tests: [PROVIDERS],
  },
  {
    row: 'Hosted: sign-in',
    holds: 'one client begins a limited number of sign-ins',
    file: FLOWS,
    text: '  if (!allowed.ok) return allowed;\n',
    replacement: '',
    tests: [PROVIDERS],
  },
  {
    row: 'Hosted: sign-in',
    holds: 'a callback URL names a host that was allowed',
    file: 'worker/routes/auth/public_origin.ts',
    text: 'if (!isKnown) return err(unknownHostError());',
    replacement: '',
    tests: [PROVIDERS],
  },
  {
    row: 'Hosted: accounts',
    holds: 'an unverified address is not linked to an account',
    file: 'worker/sign_in/sign_in_identity.ts',
    text: 'identity.emailVerified ? await listAccountsByVerifiedEmail(context.database, identity.email) : []',
    replacement: 'await listAccountsByVerifiedEmail(context.database, identity.email)',
    tests: [PROVIDERS],
  },
  {
    row: 'Hosted: enterprises',
    holds: 'an enterprise’s own provider is trusted only for its own domains',
    file: 'worker/sign_in/providers/enterprise_provider.ts',
    text: 'domain !== undefined && domains.includes(domain)',
    replacement: 'domain !== undefined',
    tests: [ENTERPRISES],
  },
  {
    row: 'Hosted: enterprises',
    holds: 'members cannot change settings',
    file: 'worker/sign_in/enterprise_settings.ts',
    text: "if (!mayActAs(caller, 'admin')) return err(adminsOnly());",
    replacement: '',
    tests: [ENTERPRISES],
  },
  {
    row: 'Hosted: enterprises',
    holds: 'an admin leaves an owner a way to sign in',
    file: 'worker/sign_in/enterprise_settings.ts',
    text: 'return owners.length === 0 ? null : ownersLockedOut();',
    replacement: 'return null;',
    tests: [ENTERPRISES],
  },
  {
    row: 'Hosted: browsers',
    holds: 'a page of another site cannot change anything',
    file: 'worker/routes/http/authenticate.ts',
    text: 'if (token === null && !isSafe(c.req.method) && !isSameOrigin(c)) return errorReply(c, crossSite());',
    replacement: '',
    tests: [SAME_ORIGIN],
  },
  {
    row: 'Hosted: browsers',
    holds: 'a page over plain http counts as another site',
    file: 'worker/routes/http/authenticate.ts',
    text: " && origin.startsWith('https:')",
    replacement: '',
    tests: [SAME_ORIGIN],
  },
  {
    row: 'Hosted: tokens',
    holds: 'an access token is for this control plane',
    file: 'worker/tokens/access_tokens.ts',
    text: '      audience,\n',
    replacement: '',
    tests: [ACCESS_TOKENS],
  },
  {
    row: 'Hosted: tokens',
    holds: 'an access token belongs to a live sign-in of its user',
    file: 'worker/tokens/signed_in.ts',
    text: 'if (family === null || family.userId !== claims.sub) return null;',
    replacement: 'if (family === null) return null;',
    tests: [ACCESS_TOKENS],
  },
  {
    row: 'Hosted: tokens',
    holds: 'a personal token allows only what its scopes allow',
    file: 'worker/routes/http/authenticate.ts',
    text: 'if (!isFor(signedIn, scope)) return errorReply(c, insufficientScope(scope));',
    replacement: '',
    tests: [PERSONAL_TOKENS],
  },
  {
    row: 'Hosted: programs',
    holds: 'attempts at device codes are limited',
    file: 'worker/tokens/device_approval.ts',
    text: '  return allowed.ok ? findPending(context, typed) : allowed;',
    replacement: '  return findPending(context, typed);',
    tests: [DEVICE_CODES],
  },
  {
    row: 'Hosted: programs',
    holds: 'a new password ends approved device codes that are still waiting',
    file: 'worker/store/passwords.ts',
    text: '    database.read.delete(deviceCodes).where(inArray(deviceCodes.userId, userIds)),\n',
    replacement: '',
    tests: [DEVICE_CODES],
  },
  {
    row: 'Hosted: outgoing calls',
    holds: 'a name that resolves to a private address is not called',
    file: 'worker/entries/node_outbound.ts',
    text: '...(checksAddress(options, host) ? { lookup: publicLookup(resolve ?? systemLookup) } : {}),',
    replacement: '',
    tests: ['worker/entries/node_outbound.test.ts'],
  },
];
