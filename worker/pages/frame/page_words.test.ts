import { expect, test } from 'vitest';
import { withoutCalls } from './page_words.ts';

test.each([
  [
    'the cursor is not one that this list returned: start again without it',
    'this part of the list is not there any more: begin at its first page',
  ],
  ['there is no binding bnd_1: list them with GET /v1/host-bindings', 'there is no binding bnd_1'],
  ['the registry has no entry a/b: search with GET /v1/marketplace/servers?q=', 'the registry has no entry a/b'],
  [
    'a.test already has a personal binding (bnd_1): change that one with PUT /v1/host-bindings/bnd_1, or give each its own sentinel',
    'a.test already has a personal binding (bnd_1): change that one, or give each its own sentinel',
  ],
  ['you cannot ask to join ent_1: GET /v1/join-offers lists those that you can ask', 'you cannot ask to join ent_1'],
  ['there is no such provider: GET /auth/providers lists them', 'there is no such provider'],
  ['the client has no secret: store it with PUT .../credential', 'the client has no secret: store it'],
  [
    'the host admits GET and HEAD: write https://a.test/v1/items',
    'the host admits GET and HEAD: write https://a.test/v1/items',
  ],
])('%s', (message, shown) => {
  expect(withoutCalls(message)).toBe(shown);
});
