import { describe } from 'vitest';

import { speakHttp2 } from '../testing/data_plane.ts';

/** The tests of these files again, with HTTP/2 on both sides. What only HTTP/1.1 has is left out. */
speakHttp2();
describe('invariants', async () => {
  await import('./invariants.test.ts');
});
describe('connectors', async () => {
  await import('./connectors.test.ts');
});
describe('GraphQL', async () => {
  await import('./graphql.test.ts');
});
describe('reach', async () => {
  await import('./sealed_reach.test.ts');
});
describe('revocation', async () => {
  await import('./revocation.test.ts');
});
describe('logins of programs', async () => {
  await import('./program_login.test.ts');
});
describe('masked replies', async () => {
  await import('./masked_replies.test.ts');
});
describe('accounts', async () => {
  await import('./account_choice.test.ts');
});
describe('captured logins', async () => {
  await import('./captured_login.test.ts');
});
