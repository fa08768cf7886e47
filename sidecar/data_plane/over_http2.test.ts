import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { isHttp2, speak } from '../testing/data_plane.ts';

/**
 * The tests of a file again, with HTTP/2 on both sides. What only HTTP/1.1 has is left out. Other files of the process share the
 * data plane, so the version holds only while these tests are collected and while they run.
 */
function overHttp2(name: string, load: () => Promise<unknown>): void {
  describe.for([name])('%s', async () => {
    beforeAll(() => speak('h2'));
    afterAll(() => speak('http/1.1'));
    speak('h2');
    await load();
    // Collected last, after what the file describes.
    describe('the version', () => {
      speak('http/1.1');
      test('is HTTP/2', () => expect(isHttp2()).toBe(true));
    });
  });
}

overHttp2('invariants', () => import('./invariants.test.ts'));
overHttp2('connectors', () => import('./connectors.test.ts'));
overHttp2('GraphQL', () => import('./graphql.test.ts'));
overHttp2('JSON bodies', () => import('./json_body.test.ts'));
overHttp2('reach', () => import('../tunnel/sealed_reach.test.ts'));
overHttp2('other ports', () => import('./other_ports.test.ts'));
overHttp2('revocation', () => import('./revocation.test.ts'));
overHttp2('logins of programs', () => import('./program_login.test.ts'));
overHttp2('masked replies', () => import('./masked_replies.test.ts'));
overHttp2('limits of requests', () => import('./request_limits.test.ts'));
overHttp2('limits of bytes', () => import('./byte_limits.test.ts'));
overHttp2('accounts', () => import('./account_choice.test.ts'));
overHttp2('client certificates', () => import('./client_certificates.test.ts'));
overHttp2('captured logins', () => import('./captured_login.test.ts'));
overHttp2('hostile clients', () => import('./hostile_client.test.ts'));
overHttp2('hostile upstreams', () => import('./hostile_upstream.test.ts'));
overHttp2('relayed replies', () => import('./relay.test.ts'));
overHttp2('the account of a login', () => import('./asked_account.test.ts'));
overHttp2('crowds', () => import('./crowd.test.ts'));
overHttp2('what is recorded', () => import('./recorded.test.ts'));
overHttp2('indistinguishability', () => import('./indistinguishable.test.ts'));
