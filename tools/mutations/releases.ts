import type { Mutation } from '../mutation.ts';

const SCRIPT_ROW = 'The install script';
const UPGRADE_ROW = '`svc upgrade`';
const SCRIPT = 'tools/package/install/install.sh';
const SCRIPT_TEST = 'e2e/install/install_script.test.ts';
const RELEASE = 'cli/upgrade/signed_release.ts';
const UPGRADE_TEST = 'e2e/install/upgrade.test.ts';

/** Checks of what is installed and what a release says of itself (decisions 0126 and 0133). */
export const RELEASE_MUTATIONS: readonly Mutation[] = [
  {
    row: SCRIPT_ROW,
    holds: 'the list of checksums has the signature of the key in the script',
    file: SCRIPT,
    text: '  check_signature\n',
    replacement: '',
    tests: [SCRIPT_TEST],
  },
  {
    row: SCRIPT_ROW,
    holds: 'a package has the signed checksum',
    file: SCRIPT,
    text: '[ "$actual" = "$expected" ] ||',
    replacement: '[ -n "$actual" ] ||',
    tests: [SCRIPT_TEST],
  },
  {
    row: SCRIPT_ROW,
    holds: 'the signature is one for releases',
    file: SCRIPT,
    text: 'ssh-keygen -Y verify -f "$work/allowed_signers" -I svc -n "$namespace"',
    replacement: 'ssh-keygen -Y check-novalidate -n git',
    tests: [SCRIPT_TEST],
  },
  {
    row: SCRIPT_ROW,
    holds: 'an svc of somebody else is not replaced',
    file: SCRIPT,
    text: '  check_place\n',
    replacement: '',
    tests: [SCRIPT_TEST],
  },
  {
    row: UPGRADE_ROW,
    holds: 'the list of checksums has the signature of the installed key',
    file: RELEASE,
    text: "else done(errorCode(error) === 'ENOENT' ? 'missing' : 'refused');",
    replacement: 'else done(null);',
    tests: [UPGRADE_TEST],
  },
  {
    row: UPGRADE_ROW,
    holds: 'the changelog has the signed checksum',
    file: RELEASE,
    text: "!== checksums.get('CHANGELOG.md')",
    replacement: '=== null',
    tests: [UPGRADE_TEST],
  },
  {
    row: UPGRADE_ROW,
    holds: 'nothing is fetched from an address that nobody named',
    file: 'cli/upgrade/upgrade_command.ts',
    text: 'options.from === undefined ? null : await readRelease(call, installation, options.from)',
    replacement: "await readRelease(call, installation, options.from ?? 'https://downloads.example.com')",
    tests: [UPGRADE_TEST],
  },
];
