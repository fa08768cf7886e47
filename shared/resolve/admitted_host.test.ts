import { describe, expect, test } from 'vitest';
import { bearerBinding } from '../model/testing/sample_binding.ts';
import { sampleConnector, sampleOperation } from '../connect/testing/sample_connector.ts';
import type { InstalledConnector } from '../model/connector.ts';
import { allowedHosts, allowsHost, policyAdmitsHost } from './admitted_host.ts';
import { compilePolicy } from './resolve.ts';

const NEVER = (): boolean => false;
const ALWAYS = (): boolean => true;

const IS_ACTIVE = ({ path }: { readonly path: string }): boolean => path === 'connectors/acme/active';

function connectorAt(host: string, name: string): InstalledConnector {
  const credential = { owner: 'personal', path: `connectors/acme/${name}` } as const;
  return sampleConnector([sampleOperation({ hosts: [host] })], { id: `con_${name}`, fqn: `acme/${name}`, credential });
}

describe('an allow list', () => {
  const list = allowedHosts(['npm.example.test', '*.cdn.example.test', 'not a host', '*'], ['own.example.test']);

  test.each(['npm.example.test', 'a.cdn.example.test', 'a.b.cdn.example.test', 'own.example.test'])(
    'has %s',
    (host) => {
      expect(allowsHost(list, host)).toBe(true);
    },
  );

  test.each([
    'cdn.example.test',
    'xcdn.example.test',
    'a.cdn.example.test.evil.test',
    'npm.example.test.evil.test',
    'a.npm.example.test',
    'example.test',
    'NPM.example.test',
    '127.0.0.1',
    '',
  ])('does not have %s', (host) => {
    expect(allowsHost(list, host)).toBe(false);
  });
});

describe('the policy admits', () => {
  test('a bound host, and each host of a bound wildcard', () => {
    const policy = compilePolicy([bearerBinding('api.example.test'), bearerBinding('*.wild.example.test')]);
    const admitted = ['api.example.test', 'a.wild.example.test', 'wild.example.test', 'x.api.example.test', 'b.test'];
    expect(admitted.map((host) => policyAdmitsHost(policy, NEVER, host))).toEqual([true, true, false, false, false]);
  });

  test('the hosts of a connector only while its credential is stored', () => {
    const connector = sampleConnector([
      sampleOperation({ hosts: ['one.example.test'] }),
      sampleOperation({ name: 'two', hosts: ['two.example.test'] }),
    ]);
    const policy = compilePolicy([], [connector]);
    for (const host of ['one.example.test', 'two.example.test']) {
      expect(policyAdmitsHost(policy, ALWAYS, host)).toBe(true);
      expect(policyAdmitsHost(policy, NEVER, host)).toBe(false);
    }
    expect(policyAdmitsHost(policy, ALWAYS, 'three.example.test')).toBe(false);
  });

  test('nothing of an inactive connector because of an active one of other hosts', () => {
    const policy = compilePolicy(
      [],
      [connectorAt('active.example.test', 'active'), connectorAt('inactive.example.test', 'inactive')],
    );
    expect(policyAdmitsHost(policy, IS_ACTIVE, 'active.example.test')).toBe(true);
    expect(policyAdmitsHost(policy, IS_ACTIVE, 'inactive.example.test')).toBe(false);
  });
});
