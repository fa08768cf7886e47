import { overHttp2 } from '../testing/data_plane.ts';

/** The tests of these files again, with HTTP/2 on both sides. What only HTTP/1.1 has is left out. */
overHttp2('invariants', () => import('./invariants.test.ts'));
overHttp2('connectors', () => import('./connectors.test.ts'));
overHttp2('GraphQL', () => import('./graphql.test.ts'));
overHttp2('reach', () => import('./sealed_reach.test.ts'));
overHttp2('revocation', () => import('./revocation.test.ts'));
overHttp2('logins of programs', () => import('./program_login.test.ts'));
overHttp2('masked replies', () => import('./masked_replies.test.ts'));
overHttp2('accounts', () => import('./account_choice.test.ts'));
overHttp2('captured logins', () => import('./captured_login.test.ts'));
overHttp2('hostile clients', () => import('./hostile_client.test.ts'));
overHttp2('hostile upstreams', () => import('./hostile_upstream.test.ts'));
overHttp2('relayed replies', () => import('./relay.test.ts'));
overHttp2('the account of a login', () => import('./asked_account.test.ts'));
overHttp2('crowds', () => import('./crowd.test.ts'));
