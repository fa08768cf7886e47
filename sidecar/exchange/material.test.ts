import { describe, expect, it } from 'vitest';
import type { Injection } from '../../shared/model/host_binding.ts';
import { ok } from '../../shared/model/result.ts';
import { Secret } from '../../shared/model/secret.ts';
import { sampleBinding } from '../../shared/model/testing/sample_binding.ts';
import type { CredentialSource, ReleasedCredential } from '../ports.ts';
import { MaterialCache, resolveMaterial } from './material.ts';

const TOKEN_REF = { owner: 'personal', path: 'aws/token' } as const;
const AWS = { scheme: 'sigv4-resign', accessKeyId: 'minted', region: 'eu-central-1', service: 's3' } as const;
const STORED: ReleasedCredential = { secret: new Secret('a stored value'), version: '1' };

/** The key set of one mint. */
const keySet = (mint: number): ReleasedCredential => ({
  secret: new Secret(`secret access key ${mint}`),
  version: '1',
  signedAs: { accessKeyId: `ASIA${mint}`, sessionToken: new Secret(`session token ${mint}`) },
});

/** What a binding's request would have, if the vault gives these. */
async function materialOf(injection: Injection, credential: ReleasedCredential, token = STORED) {
  const source: CredentialSource = {
    resolve: ({ path }) => ok(path === TOKEN_REF.path ? token : credential),
    isStored: () => true,
    findStoredVersion: () => null,
  };
  const material = await resolveMaterial(sampleBinding({ injection }), 'api.example.test', source, new MaterialCache());
  if (!material.ok) return material.error.reason;
  const { credential: secret, sessionToken, accessKeyId } = material.value;
  return [secret.reveal(), accessKeyId, sessionToken?.reveal() ?? null];
}

it('asks for the key of a binding to sign with it, and for its session token to send it', async () => {
  const uses: unknown[] = [];
  const source: CredentialSource = {
    resolve: ({ path }, use) => {
      uses.push([path, use?.place]);
      return ok(STORED);
    },
    isStored: () => true,
    findStoredVersion: () => null,
  };
  const injection: Injection = { ...AWS, accessKeyId: 'AKIAIOSFODNN7EXAMPLE', sessionTokenRef: TOKEN_REF };
  const binding = sampleBinding({ injection, credential: { owner: 'personal', path: TOKEN_REF.path } });
  await resolveMaterial(binding, 'api.example.test', source, new MaterialCache());
  expect(uses).toEqual([
    [TOKEN_REF.path, null],
    [TOKEN_REF.path, 'x-amz-security-token'],
  ]);
});

describe('a key set of AWS', () => {
  it.each([1, 2])('is used whole, with the parts of one mint (%i)', async (mint) => {
    expect(await materialOf(AWS, keySet(mint))).toEqual([
      `secret access key ${mint}`,
      `ASIA${mint}`,
      `session token ${mint}`,
    ]);
  });

  it.each<Injection>([
    { scheme: 'bearer' },
    { scheme: 'basic', username: 'u' },
    { scheme: 'header-template', header: 'X-Key', template: '{token}' },
    { scheme: 'query-param', queryParam: 'key' },
    { ...AWS, accessKeyId: 'AKIAIOSFODNN7EXAMPLE' },
  ])('is refused to a binding that does not say so (%o)', async (injection) => {
    expect(await materialOf(injection, keySet(1))).toBe('credential_unavailable');
    expect(await materialOf(injection, STORED)).toEqual(['a stored value', null, null]);
  });

  it('is refused as the session token of another key', async () => {
    const withToken = { ...AWS, accessKeyId: 'AKIAIOSFODNN7EXAMPLE', sessionTokenRef: TOKEN_REF };
    expect(await materialOf(withToken, STORED, keySet(1))).toBe('credential_unavailable');
    expect(await materialOf(withToken, STORED)).toEqual(['a stored value', null, 'a stored value']);
  });

  it('is not made of a stored value', async () => {
    expect(await materialOf(AWS, STORED)).toBe('credential_unavailable');
  });
});
