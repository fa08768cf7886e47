import type { Mutation } from '../mutation.ts';

const RULES = 'shared/join/claims_policy.test.ts';
const JOIN = 'worker/tokens/join/join_sidecar.test.ts';

/** Checks of the tokens with which jobs join. */
export const SERVICE_ACCOUNT_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Service accounts',
    holds: 'rules that strangers can satisfy are refused',
    file: 'shared/join/shared_issuers.ts',
    text: 'if (shared !== undefined && !namesOwner(shared.claims, rules)) {',
    replacement: 'if (false && shared !== undefined && !namesOwner(shared.claims, rules)) {',
    tests: [RULES],
  },
  {
    row: 'Service accounts',
    holds: 'the beginning of an owner’s name does not name the owner',
    file: 'shared/join/shared_issuers.ts',
    text: 'return names.test(fixed) && (names !== WHOLE || !isPrefix);',
    replacement: 'return names.test(fixed) && (names !== WHOLE || !isPrefix || true);',
    tests: [RULES],
  },
  {
    row: 'Service accounts',
    holds: 'a token is for one audience',
    file: 'worker/tokens/join/check_token.ts',
    text: 'return audiences.length === 1 && audiences[0] === audience;',
    replacement: 'return audiences.includes(audience);',
    tests: [JOIN],
  },
];
