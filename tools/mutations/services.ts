import type { Mutation } from '../mutation.ts';

const SEAL = 'worker/services/ready/seal_ready.ts';
const READ = 'worker/services/connectors/read_spec_text.ts';
const OF_PAGES = 'worker/routes/console/console_services.test.ts';
const OF_TEXT = 'worker/services/connectors/read_spec_text.test.ts';

/** Checks of connecting a service in the console, and of specs as text (decision 0143). */
export const SERVICE_MUTATIONS: readonly Mutation[] = [
  {
    row: 'Console: services',
    holds: 'a stored credential of a connector is replaced only if the person says so',
    file: SEAL,
    text: 'if (isKey && !replaces && (await hasCredential(context, caller, owner, fqn))) {',
    replacement: 'if (false) {',
    tests: [OF_PAGES],
  },
  {
    row: 'Console: services',
    holds: 'a host that another credential is bound to is left alone',
    file: SEAL,
    text: '    if (other !== undefined) return err(boundElsewhere(other));\n',
    replacement: '',
    tests: [OF_PAGES],
  },
  {
    row: 'Console: services',
    holds: 'bindings whose credential is refused are deleted',
    file: SEAL,
    text: "return stored.ok ? ok(undefined) : undo(context, caller, made, renameField(stored.error, 'value'));",
    replacement: "return stored.ok ? ok(undefined) : err(renameField(stored.error, 'value'));",
    tests: [OF_PAGES],
  },
  {
    row: 'Console: services',
    holds: 'a YAML text is as long as it may be before it is parsed',
    file: READ,
    text: '    if (tokens > MOST_TOKENS) return problemAt(line, `is too large: as YAML it may have ${MOST_TOKENS} tokens`);\n',
    replacement: '',
    tests: [OF_TEXT],
  },
  {
    row: 'Console: services',
    holds: 'a YAML text has each key once',
    file: READ,
    text: '        if (name === null || keys.has(name)) {',
    replacement: '        if (name === null) {',
    tests: [OF_TEXT],
  },
];
