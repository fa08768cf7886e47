import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { claimRulesProblem, findClaim, matchClaims } from './claims_policy.ts';

const GITHUB = 'https://token.actions.githubusercontent.com';
const GITLAB = 'https://gitlab.com';
const OWN = 'https://gitlab.acme.example';

describe('rules that jobs of strangers could match are refused', () => {
  it.each([
    ['no rule', OWN, {}, 'claims'],
    ['every value', OWN, { sub: '*' }, 'claims.sub'],
    ['an empty value', OWN, { sub: '' }, 'claims.sub'],
    ['a wildcard in the middle', OWN, { sub: 'project_path:*/app' }, 'claims.sub'],
    ['two wildcards', OWN, { sub: 'a**' }, 'claims.sub'],
    ['a claim of every token', OWN, { aud: 'x' }, 'claims.aud'],
    ['the issuer as a claim', OWN, { iss: OWN }, 'claims.iss'],
    ['GitHub without an owner', GITHUB, { ref: 'refs/heads/main' }, 'claims'],
    ['GitHub with an environment alone', GITHUB, { environment: 'production', ref: 'refs/heads/main' }, 'claims'],
    ['GitHub with the beginning of an owner', GITHUB, { repository_owner: 'acm*' }, 'claims'],
    ['GitHub with the beginning of an owner in the repository', GITHUB, { repository: 'acm*' }, 'claims'],
    ['GitHub with a repository without its owner', GITHUB, { repository: 'app' }, 'claims'],
    ['GitHub with a subject of every repository', GITHUB, { sub: 'repo:*' }, 'claims'],
    ['GitHub with the beginning of an owner in the subject', GITHUB, { sub: 'repo:acme*' }, 'claims'],
    ['GitHub with a subject that names no repository', GITHUB, { sub: 'environment:production' }, 'claims'],
    ['GitHub with the beginning of an id', GITHUB, { repository_id: '12*' }, 'claims'],
    ['GitHub by an issuer of an enterprise', `${GITHUB}/acme`, { ref: 'refs/heads/main' }, 'claims'],
    ['GitHub Enterprise Server', 'https://git.acme.example/_services/token', { ref: 'refs/heads/main' }, 'claims'],
    ['GitHub by another host of its domain', 'https://x.actions.githubusercontent.com', { ref: 'x' }, 'claims'],
    ['GitLab without a project', GITLAB, { ref: 'main', ref_type: 'branch' }, 'claims'],
    ['GitLab with the beginning of a group', GITLAB, { namespace_path: 'acme*' }, 'claims'],
    ['GitLab with the beginning of a group in the project', GITLAB, { project_path: 'acme*' }, 'claims'],
    ['GitLab with the beginning of a group in the subject', GITLAB, { sub: 'project_path:acme*' }, 'claims'],
    ['Buildkite without an organization', 'https://agent.buildkite.com', { pipeline_slug: 'app' }, 'claims'],
    ['Terraform without an organization', 'https://app.terraform.io', { terraform_workspace_name: 'x' }, 'claims'],
    ['Google without a subject', 'https://accounts.google.com', { azp: 'x' }, 'claims'],
    ['a pod without its namespace', OWN, { 'kubernetes.io/serviceaccount/name': 'runner' }, 'claims'],
    ['a pod of every namespace', OWN, { sub: 'system:serviceaccount:*' }, 'claims'],
    ['pods among other subjects of a cluster', OWN, { sub: 'system:*' }, 'claims'],
    [
      'Terraform in Europe without an organization',
      'https://app.eu.terraform.io',
      { terraform_workspace_name: 'x' },
      'claims',
    ],
    ['the beginning of a namespace', OWN, { 'kubernetes.io/namespace': 'ci*' }, 'claims'],
  ])('%s', (_, issuer, rules, field) => {
    expect(claimRulesProblem(issuer, rules)?.field).toBe(field);
  });

  it.each([
    ['a repository', GITHUB, { repository: 'acme/app' }],
    ['repositories of an owner', GITHUB, { repository: 'acme/*' }],
    ['an owner and a branch', GITHUB, { repository_owner: 'acme', ref: 'refs/heads/release/*' }],
    ['the id of a repository', GITHUB, { repository_id: '123' }],
    ['a subject', GITHUB, { sub: 'repo:acme/app:environment:production' }],
    ['subjects of a repository', GITHUB, { sub: 'repo:acme/app:*' }],
    ['a project', GITLAB, { project_path: 'acme/app' }],
    ['a group', GITLAB, { namespace_path: 'acme/team' }],
    ['a subject of GitLab', GITLAB, { sub: 'project_path:acme/app:*' }],
    ['an issuer of its own', OWN, { sub: 'job:*' }],
    ['a service account of a namespace', OWN, { sub: 'system:serviceaccount:ci:runner' }],
    ['a namespace', OWN, { 'kubernetes.io/namespace': 'ci' }],
  ])('accepts %s', (_, issuer, rules) => {
    expect(claimRulesProblem(issuer, rules)).toBeNull();
  });
});

describe('a token', () => {
  const rules = { repository: 'acme/app', ref: 'refs/heads/release/*', 'kubernetes.io/namespace': 'ci' };
  const claims = { repository: 'acme/app', ref: 'refs/heads/release/1', 'kubernetes.io': { namespace: 'ci' } };

  it('is taken if it satisfies every rule', () => {
    expect(matchClaims(rules, claims)).toEqual({ ok: true, value: undefined });
  });

  it.each<[string, object, string[]]>([
    ['another repository', { repository: 'acme/app2' }, ['repository']],
    ['another case', { repository: 'Acme/app' }, ['repository']],
    ['a ref that only begins like the rule', { ref: 'refs/heads/release' }, ['ref']],
    ['a missing claim', { repository: undefined }, ['repository']],
    ['a claim that is a list', { repository: ['acme/app'] }, ['repository']],
    ['a claim that is an object', { repository: { toString: 'acme/app' } }, ['repository']],
    ['a claim that is null', { ref: null }, ['ref']],
    ['another namespace', { 'kubernetes.io': { namespace: 'other' } }, ['kubernetes.io/namespace']],
    ['a namespace in a list', { 'kubernetes.io': [{ namespace: 'ci' }] }, ['kubernetes.io/namespace']],
    ['two differences', { repository: 'x', ref: 'y' }, ['repository', 'ref']],
  ])('is refused with %s', (_, change, differing) => {
    expect(matchClaims(rules, { ...claims, ...change })).toEqual({ ok: false, error: differing });
  });

  it('is compared by its numbers and booleans too', () => {
    expect(matchClaims({ project_id: '7', ref_protected: 'true' }, { project_id: 7, ref_protected: true }).ok).toBe(
      true,
    );
  });

  it('has no claims of the prototype', () => {
    expect(findClaim({}, 'constructor')).toBeUndefined();
    expect(findClaim({ a: {} }, 'a/constructor/name')).toBeUndefined();
    expect(matchClaims({ '__proto__/x': 'y' }, {}).ok).toBe(false);
  });

  it('may have a claim whose name has slashes', () => {
    expect(findClaim({ 'https://acme.example/team': 'x' }, 'https://acme.example/team')).toBe('x');
  });
});

it('matches a prefix rule exactly when the claim begins with its text', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.string(), (fixed, claim) => {
      fc.pre(!fixed.includes('*'));
      expect(matchClaims({ sub: `${fixed}*` }, { sub: claim }).ok).toBe(claim.startsWith(fixed));
      expect(matchClaims({ sub: fixed }, { sub: claim }).ok).toBe(claim === fixed);
    }),
  );
});
