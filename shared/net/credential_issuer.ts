/** An endpoint whose replies contain credentials, and their kinds. */
interface Issuer {
  readonly host: RegExp | null;
  readonly path: RegExp | null;
  readonly gives: string;
}

/**
 * Well-known endpoints that issue credentials (design section 13). Their reply is the purpose of the request, so it is
 * neither refused nor masked; the kinds are shown where a person decides, and recorded in the audit log. The list is an aid
 * and never complete.
 */
const ISSUERS: readonly Issuer[] = [
  {
    host: /^(?:sts|iam|signin|sso|portal\.sso|oidc|cognito-identity)(?:-fips)?(?:\.[a-z\d-]+)?\.amazonaws\.com(?:\.cn)?$/,
    path: null,
    gives: 'AWS keys',
  },
  {
    host: /^(?:api\.ecr(?:-public)?|codeartifact)\.[a-z\d-]+\.amazonaws\.com(?:\.cn)?$/,
    path: null,
    gives: 'registry tokens',
  },
  { host: /^auth\.docker\.io$/, path: null, gives: 'registry tokens' },
  { host: /^(?:oauth2|sts|iamcredentials)\.googleapis\.com$/, path: null, gives: 'Google access tokens' },
  { host: /^login\.(?:microsoftonline\.(?:com|us)|chinacloudapi\.cn)$/, path: null, gives: 'Microsoft access tokens' },
  {
    host: null,
    path: /\/(?:oauth2?|oauth2?\/v\d[\d.]*|connect|openid-connect|login\/oauth)\/(?:access_?)?token$/,
    gives: 'OAuth tokens',
  },
  {
    host: null,
    path: /\/(?:jwt\/auth|service\/token|v2\/(?:auth|token)|v2\/auth\/token|v2\/users\/login)$|^\/token$/,
    gives: 'registry tokens',
  },
  {
    host: null,
    path: /\/(?:(?:personal_)?access[_-]tokens|deploy[_-]tokens|api[_-]?keys|create_api_key|ephemeral_keys|npm\/v1\/tokens|user\/tokens)(?:\/[^/]+)?$/,
    gives: 'tokens or keys of the service',
  },
  {
    host: null,
    path: /\/(?:serviceaccounts\/[^/]+\/token|actions\/runners\/(?:registration-token|remove-token|generate-jitconfig)|v1\/auth\/.+\/login)$/,
    gives: 'tokens of the service',
  },
  {
    host: null,
    path: /^\/(?:user|repos\/[^/]+\/[^/]+|api\/v\d\/user|api\/v\d\/projects\/[^/]+)\/(?:keys|deploy_keys)$/,
    gives: 'access to a key that the request names',
  },
];

const ANY_HOST = anyOf(ISSUERS.flatMap(({ host }) => host ?? []));
const ANY_PATH = anyOf(ISSUERS.flatMap(({ path }) => path ?? []));

function anyOf(expressions: readonly RegExp[]): RegExp {
  return new RegExp(expressions.map(({ source }) => `(?:${source})`).join('|'));
}

/** The credentials that a reply of this endpoint may contain, in words; null if it is not a known issuer. */
export function credentialsIssuedAt(host: string, path: string): string | null {
  const plain = path.toLowerCase().replace(/(?<=.)\/$/, '');
  if (!ANY_HOST.test(host) && !ANY_PATH.test(plain)) return null;
  const found = ISSUERS.find((issuer) => (issuer.host?.test(host) ?? true) && (issuer.path?.test(plain) ?? true));
  return found?.gives ?? null;
}

/** The credentials that a host issues at any path, or some host below a pattern `*.suffix`; null if none is known. */
export function credentialsIssuedBy(pattern: string): string | null {
  const hosts = pattern.startsWith('*.') ? SAMPLES.filter((host) => host.endsWith(pattern.slice(1))) : [pattern];
  const found = ISSUERS.find(({ host }) => host !== null && hosts.some((name) => host.test(name)));
  return found?.gives ?? null;
}

/** A sample host of each kind, to test whether a wildcard covers it. */
const SAMPLES = [
  'sts.amazonaws.com',
  'sts.us-east-1.amazonaws.com',
  'api.ecr.us-east-1.amazonaws.com',
  'auth.docker.io',
  'oauth2.googleapis.com',
  'login.microsoftonline.com',
];
