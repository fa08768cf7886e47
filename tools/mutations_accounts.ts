import type { Mutation } from './mutation.ts';

const ROW = '403 `account_not_chosen`';
const FILE_ROW = '`.svc.toml`';
const CHOICE = 'shared/resolve/account_choice.ts';
const CHOICE_TEST = 'shared/resolve/account_choice.test.ts';
const EXCHANGE = 'sidecar/exchange/exchange.ts';
const PLANE_TEST = 'sidecar/tunnel/account_choice.test.ts';
const FOLDER = 'cli/launch/folder_secrets.ts';
const TRUST = 'cli/launch/trust_command.ts';
const TRUST_TEST = 'cli/launch/trust_command.test.ts';
const PARSER = 'shared/wire/folder_file.ts';
const PARSER_TEST = 'shared/wire/folder_file.test.ts';

/** Checks of the choice between two accounts of one host (decision 0064). */
export const ACCOUNT_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'the placeholder of an account that the session did not choose is refused',
    file: EXCHANGE,
    text: 'if (other === undefined) return ok(accounts);',
    replacement: 'if (other !== null) return ok(accounts);',
    tests: [PLANE_TEST],
  },
  {
    row: ROW,
    holds: 'only bindings of the chosen secrets are used',
    file: CHOICE,
    text: 'bindings: bindings.filter(isChosen),',
    replacement: 'bindings,',
    tests: [CHOICE_TEST, PLANE_TEST],
  },
  {
    row: ROW,
    holds: 'no other account takes the place of a chosen one whose binding is gone',
    file: CHOICE,
    text: 'return isGone ? null : { bindings,',
    replacement: 'return isGone && bindings.length === 0 ? null : { bindings,',
    tests: [CHOICE_TEST, PLANE_TEST],
  },
  {
    row: ROW,
    holds: 'no operation of a connector runs with the credential of another account',
    file: EXCHANGE,
    text: 'if (chosen.length === 0 || chosen.some(({ path }) => path === credential.path)) return ok(undefined);',
    replacement: 'if (chosen.length === 0 || credential.path !== "") return ok(undefined);',
    tests: [PLANE_TEST],
  },
  {
    row: ROW,
    holds: 'a choice brings no binding of the enterprise back that a personal one replaces',
    file: CHOICE,
    text: "(owner === 'enterprise' && binding.owner === 'personal')",
    replacement: "(owner === 'personal' && binding.owner === 'enterprise')",
    tests: [CHOICE_TEST],
  },
  {
    row: ROW,
    holds: 'a session does not start with a choice that chooses nothing',
    file: CHOICE,
    text: 'if (unbound !== undefined)',
    replacement: 'if (unbound === null)',
    tests: [CHOICE_TEST],
  },
  {
    row: ROW,
    holds: 'a restored session has its choice',
    file: 'sidecar/session/saved_session.ts',
    text: '    choice: session.choice,\n',
    replacement: '    choice: null,\n',
    tests: ['sidecar/session/session_keeper.test.ts'],
  },
  {
    row: ROW,
    holds: 'the placeholder of an account that was not chosen is not handed out',
    file: 'sidecar/local_api/session_routes.ts',
    text: 'bindings.filter((binding) => !left.has(binding))',
    replacement: 'bindings.filter((binding) => left.size >= 0 && binding)',
    tests: ['sidecar/local_api/sandbox_routes.test.ts'],
  },
  {
    row: FILE_ROW,
    holds: 'a file that nobody confirmed on this machine has no effect',
    file: FOLDER,
    text: 'if (Object.hasOwn(trusted, at)) return',
    replacement: 'if (Object.hasOwn(trusted, at) || found.ok) return',
    tests: [TRUST_TEST],
  },
  {
    row: FILE_ROW,
    holds: 'a confirmed file that was changed starts nothing',
    file: FOLDER,
    text: "  if (found.value.sha256 !== sha256) return { kind: 'changed', folder, problem: 'it was changed' };\n",
    replacement: '',
    tests: [TRUST_TEST],
  },
  {
    row: FILE_ROW,
    holds: 'a confirmed file that is gone starts nothing',
    file: FOLDER,
    text: "if (found.value === null) return { kind: 'changed', folder, problem: 'it is gone' };",
    replacement: "if (found.value === null) return { kind: 'none' };",
    tests: [TRUST_TEST],
  },
  {
    row: FILE_ROW,
    holds: 'a link is not followed',
    file: FOLDER,
    text: 'constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK',
    replacement: 'constants.O_RDONLY | constants.O_NONBLOCK',
    tests: [TRUST_TEST],
  },
  {
    row: FILE_ROW,
    holds: 'a file over 16 KiB is not used',
    file: FOLDER,
    text: 'if (length > MAX_FOLDER_FILE_BYTES) return err',
    replacement: 'if (length < 0) return err',
    tests: [TRUST_TEST],
  },
  {
    row: FILE_ROW,
    holds: 'a session confirms no file',
    file: TRUST,
    text: "  requireOutside(call, home, 'which may not change what it uses');\n  const shown",
    replacement: '  const shown',
    tests: [TRUST_TEST],
  },
  {
    row: FILE_ROW,
    holds: 'what a person did not confirm is not stored',
    file: TRUST,
    text: "if (!(await askYes(context, 'Confirm?'))) throw new CliError(EXIT.failed, 'nothing was changed');",
    replacement: "await askYes(context, 'Confirm?');",
    tests: [TRUST_TEST],
  },
  {
    row: FILE_ROW,
    holds: 'an entry that could be a credential is refused',
    file: PARSER,
    text: "if (name.split('/').some(mayBeCredential)) {",
    replacement: 'if (name === "") {',
    tests: [PARSER_TEST],
  },
];
