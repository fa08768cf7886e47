import type { Mutation } from '../mutation.ts';

const PLAN = 'cli/seal/seal_service.ts';
const COMMAND = 'cli/seal/seal_command.ts';
const SERVICE = 'cli/seal/seal_credential.ts';
const FOUND = 'cli/seal/seal_found.ts';
const FIND = 'cli/seal/find_credentials.ts';
const PLACES = 'cli/seal/credential_places.ts';
const REWRITE = 'cli/seal/rewrite_file.ts';
const SCREEN = 'cli/launch/screen_environment.ts';
const ENVIRONMENT = 'sandbox/launch/session_environment.ts';
const SEAL_TEST = 'cli/seal/seal_command.test.ts';
const FOUND_TEST = 'cli/seal/seal_found.test.ts';
const FIND_TEST = 'cli/seal/find_credentials.test.ts';
const REWRITE_TEST = 'cli/seal/rewrite_file.test.ts';
const SCREEN_TEST = 'cli/launch/screen_environment.test.ts';

/** `svc seal`, and what a command of `svc run` inherits. */
export const SEAL_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Seal: services',
    holds: 'a host that is bound to another secret stops the seal',
    file: PLAN,
    text: 'if (record?.credential_ref === binding.credential_ref) return',
    replacement: 'if (record !== null) return',
    tests: [SEAL_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a failed seal leaves no binding',
    file: PLAN,
    text: 'throw await undoBindings(client, made, { error, sending });',
    replacement: 'throw error;',
    tests: [SEAL_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a stored value is replaced only after a confirmation',
    file: SERVICE,
    text: 'if (stored !== null) await confirmReplacement(call, stored, hosts);',
    replacement: '',
    tests: [SEAL_TEST, FOUND_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a credential of another service is not sent to this one',
    file: COMMAND,
    text: 'if (other === null || other === service.name) return value;',
    replacement: 'if (other !== value) return value;',
    tests: [SEAL_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a link in the place of a file is not followed',
    file: PLACES,
    text: "if (stats.isSymbolicLink()) return { kind: 'left', why: 'is a symbolic link' };",
    replacement: '',
    tests: [FOUND_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a link in the place of a folder is not followed',
    file: FOUND,
    text: 'else if (!(await isInside(base, file.path)))',
    replacement: "else if (base === '')",
    tests: [FOUND_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a credential of the working directory is confirmed once more',
    file: FOUND,
    text: 'if (!isForeign) return;',
    replacement: 'if (same.length > 0) return;',
    tests: [FOUND_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a file of the working directory does not name the host of a credential',
    file: FOUND,
    text: "file?.origin === 'home' ? [file.credential.values] : []",
    replacement: 'file !== null ? [file.credential.values] : []',
    tests: [FOUND_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a second credential of a service does not replace the first one of the same search',
    file: FOUND,
    text: 'if (taken.has(formatVaultReference(service.secret))) {',
    replacement: 'if (taken.size < 0) {',
    tests: [FOUND_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a search reads no line that is too long for a setting',
    file: FIND,
    text: 'const match = line.length > MAX_LINE ? null : pattern.exec(line);',
    replacement: 'const match = pattern.exec(line);',
    tests: [FIND_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a search lists a limited number of credentials of a file',
    file: FIND,
    text: 'if (parts.length === MAX_FOUND) break;',
    replacement: '',
    tests: [FIND_TEST],
  },
  {
    row: 'Seal: services',
    holds: 'a file that has changed since it was shown is not written',
    file: REWRITE,
    text: "if (found?.kind !== 'text' || found.text !== before) {",
    replacement: "if (found?.kind !== 'text') {",
    tests: [REWRITE_TEST],
  },
  {
    row: 'Seal: environment',
    holds: 'a stored secret or a known shape is not inherited',
    file: SCREEN,
    text: 'return reference === null && shape === null ? [] : [{ name, reference, shape }];',
    replacement: 'return [];',
    tests: [SCREEN_TEST],
  },
  {
    row: 'Seal: environment',
    holds: 'a failed check starts nothing',
    file: SCREEN,
    text: 'if (!isUnreachable(error, signal)) throw error;',
    replacement: '',
    tests: [SCREEN_TEST],
  },
  {
    row: 'Seal: environment',
    holds: 'a credential that is passed on is recorded, or there is no session',
    file: 'sidecar/local_api/session_routes.ts',
    text: 'if (input.kept_env.length > 0 && !options.audit.accepting) return err(auditUnavailableError());',
    replacement: '',
    tests: ['sidecar/local_api/app.test.ts'],
  },
  {
    row: 'Seal: environment',
    holds: 'credentials in the settings of npm are not inherited',
    file: ENVIRONMENT,
    text: '  /^npm_config_.*(?:auth|token|password)/i,\n',
    replacement: '',
    tests: ['sandbox/launch/session_environment.test.ts'],
  },
  {
    row: 'Seal: environment',
    holds: 'a placeholder on its way to an unbound host is noticed',
    file: 'shared/inject/stray_placeholder.ts',
    text: 'if (pair !== null) texts.push(pair.username, pair.password);',
    replacement: '',
    tests: ['shared/inject/stray_placeholder.test.ts'],
  },
  {
    row: 'Uninstall: state directory',
    holds: 'only a state directory is deleted',
    file: 'cli/teardown/uninstall_command.ts',
    text: 'if (isState && !isAbove && isOwn) return names;',
    replacement: 'if (!isAbove && isOwn) return names;',
    tests: ['cli/teardown/uninstall_command.test.ts'],
  },
  {
    row: 'Uninstall: state directory',
    holds: 'nothing that contains the home directory is deleted',
    file: 'cli/teardown/uninstall_command.ts',
    text: 'if (isState && !isAbove && isOwn) return names;',
    replacement: 'if (isState && isOwn) return names;',
    tests: ['cli/teardown/uninstall_command.test.ts'],
  },
];
