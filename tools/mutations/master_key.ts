import type { Mutation } from '../mutation.ts';

const KEY = 'worker/entries/protected_key.ts';
const FILES = 'worker/entries/vault_key_files.ts';
const KEY_TEST = 'worker/entries/protected_key.test.ts';
const KMS_TEST = 'worker/entries/kms/wrapped_key.test.ts';
const row = 'The file of the master key';

/** Checks of a master key that is sealed by the keyring, a passphrase or a KMS (decisions 0130 and 0153). */
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
  {
    row,
    holds: 'a key that a KMS has wrapped opens for its own file only (AWS)',
    file: 'worker/entries/kms/aws_kms.ts',
    text: 'const context = { purpose: KMS_PURPOSE, file };',
    replacement: 'const context = { purpose: KMS_PURPOSE, file: file.slice(0, 0) };',
    tests: [KMS_TEST],
  },
  {
    row,
    holds: 'a key that a KMS has wrapped opens for its own file only (Google)',
    file: 'worker/entries/kms/google_kms.ts',
    text: '`${KMS_PURPOSE}\\0${file}`',
    replacement: '`${KMS_PURPOSE}\\0${file.slice(0, 0)}`',
    tests: [KMS_TEST],
  },
  {
    row,
    holds: 'an answer of AWS KMS for another key is refused',
    file: 'worker/entries/kms/aws_kms.ts',
    text: 'if (answer.data.KeyId !== key.name)',
    replacement: "if (answer.data.KeyId !== key.name && key.name === '')",
    tests: [KMS_TEST],
  },
  {
    row,
    holds: 'the key of a KMS is read from the file only if it is the name of one',
    file: KEY,
    text: 'if (!key.ok) throw damaged(name);',
    replacement: "if (!key.ok) return { by: 'kms', key: { cloud: 'google', name: read.key }, kms };",
    tests: [KMS_TEST],
  },
  {
    row,
    holds: 'an alias is no key of a KMS',
    file: 'shared/model/kms_key.ts',
    text: ':key\\/[A-Za-z0-9-]{1,64}$/',
    replacement: ':(?:key|alias)\\/[A-Za-z0-9-]{1,64}$/',
    tests: [KMS_TEST],
  },
];
