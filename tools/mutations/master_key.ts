import type { Mutation } from '../mutation.ts';

const KEY = 'worker/entries/protected_key.ts';
const FILES = 'worker/entries/vault_key_files.ts';
const KEY_TEST = 'worker/entries/protected_key.test.ts';
const row = 'The file of the master key';

/** Checks of a master key that is sealed by the keyring or a passphrase (decision 0130). */
export const MASTER_KEY_MUTATIONS: readonly Mutation[] = [
  {
    row,
    holds: 'a change of the key writes both keys under the protection of the old one',
    file: FILES,
    text: 'await files.createOnce(name, await sealedLike(files, unlock, name, text));',
    replacement: 'await files.createOnce(name, text);',
    tests: [KEY_TEST],
  },
  {
    row,
    holds: 'a changed key stays under the protection of the old one',
    file: FILES,
    text: 'replaceFile(home, await sealedLike(homeFiles(home), unlockOf(settings, keyring), VAULT_KEY_FILE, content));',
    replacement: 'replaceFile(home, content);',
    tests: [KEY_TEST],
  },
  {
    row,
    holds: 'a protected file opens under its own name only',
    file: KEY,
    text: 'return Buffer.from(`svc master key\\0${name}`);',
    replacement: 'return Buffer.from(name.slice(0, 0));',
    tests: [KEY_TEST],
  },
  {
    row,
    holds: 'the cost of a passphrase has an upper bound, whatever the file says',
    file: KEY,
    text: '.max(2 ** 20)',
    replacement: '',
    tests: [KEY_TEST],
  },
  {
    row,
    holds: 'a key is not replaced by one that does not open again',
    file: FILES,
    text: 'await checkOpens(text, content, {',
    replacement: 'void ((..._unused: unknown[]) => undefined)(text, content, {',
    tests: [KEY_TEST],
  },
  {
    row,
    holds: 'the protection of a key is not changed while the key is',
    file: FILES,
    text: 'if ((await keyChange(settings, home, keyring)) !== null) {',
    replacement: "if ((await keyChange(settings, home, keyring)) !== null && home === '') {",
    tests: [KEY_TEST],
  },
  {
    row,
    holds: 'a key for the keyring is on no command line',
    file: 'worker/entries/os_keyring.ts',
    text: "const ran = await run('security', ['-i'], line);",
    replacement: "const ran = await run('security', line.trim().split(' '), line);",
    tests: [KEY_TEST],
  },
];
