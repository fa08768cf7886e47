import { type ClaimPattern, type ClaimRules, readClaimPattern } from './claim_pattern.ts';

/** A claim that says whose a job is. `names` is what the fixed text of its rule must contain, so that it names one owner. */
interface OwnerClaim {
  readonly claim: string;
  readonly names: RegExp;
}

/** An issuer that gives tokens to jobs of everybody, or of more than one team. */
interface SharedIssuer {
  readonly isIssuer: (issuer: URL) => boolean;
  readonly claims: readonly OwnerClaim[];
  /** For people: which rules would do. */
  readonly wants: string;
}

/** The whole text; a rule that is a prefix of an owner's name would match the names that begin with it. */
const WHOLE = /^[^*]+$/;
const whole = (claim: string): OwnerClaim => ({ claim, names: WHOLE });

const SHARED: readonly SharedIssuer[] = [
  {
    // Also GitHub Enterprise Cloud with an issuer of its own path, and GitHub Enterprise Server, where teams share it.
    isIssuer: ({ hostname, pathname }) =>
      isHost(hostname, 'actions.githubusercontent.com') || pathname.startsWith('/_services/token'),
    claims: [
      { claim: 'repository', names: /^[^/*]+\// },
      { claim: 'sub', names: /^repo:[^/:*]+\// },
      ...['repository_owner', 'repository_id', 'repository_owner_id', 'enterprise_id'].map(whole),
    ],
    wants: 'such as repository=OWNER/NAME or repository_owner=OWNER',
  },
  {
    isIssuer: ({ hostname }) => hostname === 'gitlab.com',
    claims: [
      { claim: 'project_path', names: /^[^/*]+\// },
      { claim: 'sub', names: /^project_path:[^/:*]+\// },
      ...['namespace_path', 'project_id', 'namespace_id', 'root_namespace_id'].map(whole),
    ],
    wants: 'such as project_path=GROUP/PROJECT or namespace_path=GROUP',
  },
  {
    isIssuer: ({ hostname }) => hostname === 'agent.buildkite.com',
    claims: [{ claim: 'sub', names: /^organization:[^:*]+:/ }, ...['organization_slug', 'organization_id'].map(whole)],
    wants: 'such as organization_slug=ORGANIZATION',
  },
  {
    isIssuer: ({ hostname }) => hostname === 'app.terraform.io' || hostname === 'app.eu.terraform.io',
    claims: [
      { claim: 'sub', names: /^organization:[^:*]+:/ },
      ...['terraform_organization_name', 'terraform_organization_id'].map(whole),
    ],
    wants: 'such as terraform_organization_name=ORGANIZATION',
  },
  {
    isIssuer: ({ hostname }) => hostname === 'accounts.google.com',
    claims: ['sub', 'email'].map(whole),
    wants: 'such as sub=UNIQUE-ID of the service account',
  },
];

const KUBERNETES = 'kubernetes.io/';
const POD_SUBJECT = 'system:serviceaccount';
const KUBERNETES_CLAIMS: readonly OwnerClaim[] = [
  { claim: 'sub', names: /^system:serviceaccount:[^:*]+:/ },
  ...['kubernetes.io/namespace'].map(whole),
];

/** Why strangers could satisfy the rules at this issuer; null if only jobs of one owner can. */
export function strangerProblem(issuer: string, rules: ClaimRules): string | null {
  const url = new URL(issuer);
  const shared = SHARED.find(({ isIssuer }) => isIssuer(url));
  if (shared !== undefined && !namesOwner(shared.claims, rules)) {
    return `does not say whose the job is, and anybody can run jobs at this issuer: add one ${shared.wants}`;
  }
  if (isKubernetes(rules) && !namesOwner(KUBERNETES_CLAIMS, rules)) {
    return 'does not say which namespace the pod is in: add kubernetes.io/namespace=NAMESPACE';
  }
  return null;
}

/** Whether the rules are about pods, also if the subject's rule is a prefix that covers pods among others, such as `system:*`. */
function isKubernetes(rules: ClaimRules): boolean {
  if (Object.keys(rules).some((claim) => claim.startsWith(KUBERNETES))) return true;
  const { fixed, isPrefix } = readClaimPattern(rules['sub'] ?? '');
  return fixed.startsWith(POD_SUBJECT) || (isPrefix && POD_SUBJECT.startsWith(fixed));
}

function namesOwner(claims: readonly OwnerClaim[], rules: ClaimRules): boolean {
  return claims.some(({ claim, names }) => {
    const value = Object.hasOwn(rules, claim) ? rules[claim] : undefined;
    return value !== undefined && isNaming(readClaimPattern(value), names);
  });
}

function isNaming({ fixed, isPrefix }: ClaimPattern, names: RegExp): boolean {
  return names.test(fixed) && (names !== WHOLE || !isPrefix);
}

function isHost(hostname: string, host: string): boolean {
  return hostname === host || hostname.endsWith(`.${host}`);
}
