import type { Mutation } from '../mutation.ts';

const RULES = 'shared/join/claims_policy.test.ts';
const JOIN = 'worker/tokens/join/join_sidecar.test.ts';
const COMMAND = 'cli/service_accounts/join_command.test.ts';

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
  {
    row: 'Service accounts',
    holds: 'a job’s command does not inherit what requests tokens',
    file: 'cli/service_accounts/job_token.ts',
    text: 'const hidden = new Set([REQUEST_URL, REQUEST_TOKEN, ',
    replacement: 'const hidden = new Set([REQUEST_URL, ',
    tests: [COMMAND],
  },
  {
    row: 'Service accounts',
    holds: 'the token that requests tokens is sent over https alone',
    file: 'cli/service_accounts/job_token.ts',
    text: "(url.protocol !== 'https:' && !(",
    replacement: "(false && url.protocol !== 'https:' && !(",
    tests: [COMMAND],
  },
  {
    row: 'Service accounts',
    holds: 'a state directory that holds something is not a job’s, which is deleted',
    file: 'cli/service_accounts/job_home.ts',
    text: 'if (existsSync(home) && readdirSync(home).length > 0) {',
    replacement: 'if (false && existsSync(home) && readdirSync(home).length > 0) {',
    tests: [COMMAND],
  },
  {
    row: 'Service accounts',
    holds: 'no enterprise uses up the tokens of another',
    file: 'worker/tokens/join/check_token.ts',
    text: 'JSON.stringify([enterpriseId, issuer, ...id])',
    replacement: "JSON.stringify([enterpriseId === '', issuer, ...id])",
    tests: [JOIN],
  },
  {
    row: 'Service accounts',
    holds: 'tokens of strangers use up no joins',
    file: 'worker/tokens/join/join_sidecar.ts',
    text: 'takeAttempt(context, REFUSALS_OF_ACCOUNT, account.userId)',
    replacement: 'takeAttempt(context, JOINS_OF_ACCOUNT, account.userId)',
    tests: [JOIN],
  },
  {
    row: 'Service accounts: pods',
    holds: 'a session is handed over without the environment of the sidecar',
    file: 'cli/service_accounts/hand_over.ts',
    text: 'sessionEnvironment({}, {',
    replacement: 'sessionEnvironment(process.env, {',
    tests: ['cli/service_accounts/hand_over.test.ts'],
  },
  {
    row: 'Service accounts: pods',
    holds: 'no link that the agent has put into the folder is followed',
    file: 'cli/service_accounts/hand_over.ts',
    text: "const draft = join(folder, `.${randomBytes(16).toString('hex')}`);\n  write(draft);\n  renameSync(draft, join(folder, name));",
    replacement: 'write(join(folder, name));',
    tests: ['cli/service_accounts/hand_over.test.ts'],
  },
  {
    row: 'Service accounts: pods',
    holds: 'a value cannot end its quotes in the script',
    file: 'cli/service_accounts/hand_over.ts',
    text: "value.replaceAll(\"'\", String.raw`'\\''`)",
    replacement: 'value',
    tests: ['cli/service_accounts/hand_over.test.ts'],
  },
];
