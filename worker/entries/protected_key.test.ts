import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { newMasterKey } from '../../e2e/runtimes/in_process.ts';
import { Secret } from '../../shared/model/secret.ts';
import { readMasterKeys } from '../installation/local_home.ts';
import { type Keyring, osKeyring, type RunProgram } from './os_keyring.ts';
import { nodeKms } from './kms/node_kms.ts';
import { newKeyringKey, openProtected, protect, type Protection } from './protected_key.ts';
import {
  beginKeyChange,
  endKeyChange,
  fileKeys,
  keyChange,
  keyFiles,
  keyProtection,
  protectKeyFile,
} from './vault_key_files.ts';

const PASSPHRASE = 'correct horse battery staple';
/** The real cost is tried once. */
const CHEAP = { n: 1024, r: 8, p: 1 };
const SETTINGS = { vaultPassphrase: new Secret(PASSPHRASE) };

/** A keyring in memory, for machines without one. */
class FakeKeyring implements Keyring {
  readonly keys = new Map<string, Secret>();
  isThere = true;

  find(id: string): Promise<Secret | null> {
    if (!this.isThere) return Promise.reject(Object.assign(new Error('locked'), { code: 'vault_keyring_unavailable' }));
    return Promise.resolve(this.keys.get(id) ?? null);
  }

  store(id: string, key: Secret): Promise<void> {
    this.keys.set(id, key);
    return Promise.resolve();
  }

  remove(id: string): Promise<void> {
    this.keys.delete(id);
    return Promise.resolve();
  }
}

let home: string;
let keyring: FakeKeyring;
const key = newMasterKey();
const fileOf = (name: string): string => readFileSync(join(home, name), 'utf8');

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-protected-'));
  keyring = new FakeKeyring();
  writeFileSync(join(home, 'vault.key'), `${key.reveal()}\n`, { mode: 0o600 });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const WAYS: readonly [string, () => Protection][] = [
  ['a passphrase', () => ({ by: 'passphrase', passphrase: new Secret(PASSPHRASE), cost: CHEAP })],
  ['the keyring', () => newKeyringKey()],
];
/** As `fileKeys`, with the keyring of the test. */
const readKeys = async () => {
  const read = await readMasterKeys(keyFiles(SETTINGS, home, keyring));
  if (!read.ok) throw new Error(read.error);
  return [read.value.masterKey?.reveal(), read.value.previousMasterKey?.reveal()];
};

describe.each(WAYS)('a master key behind %s', (_, next) => {
  it('is in no file as it is, opens again, and goes back into its file', async () => {
    const protection = next();
    await protectKeyFile(SETTINGS, home, protection, keyring);
    expect(await keyProtection(home)).toBe(protection.by);
    for (const name of readdirSync(home)) expect(fileOf(name)).not.toContain(key.reveal());
    expect(statSync(join(home, 'vault.key')).mode & 0o777).toBe(0o600);
    expect(await readKeys()).toEqual([key.reveal(), undefined]);
    await protectKeyFile(SETTINGS, home, null, keyring);
    expect([await keyProtection(home), fileOf('vault.key'), keyring.keys.size]).toEqual([
      'none',
      `${key.reveal()}\n`,
      0,
    ]);
  });

  it('is changed under the same protection, also by a run that was killed between any two steps', async () => {
    await protectKeyFile(SETTINGS, home, next(), keyring);
    const first = await beginKeyChange(SETTINGS, home, key, keyring);
    for (const name of readdirSync(home)) {
      expect(fileOf(name)).not.toContain(key.reveal());
      expect(fileOf(name)).not.toContain(first.after.reveal());
    }
    expect(readdirSync(home).toSorted()).toEqual(['vault.key', 'vault.key.change']);
    expect(await readKeys()).toEqual([first.after.reveal(), key.reveal()]);
    const again = await beginKeyChange(SETTINGS, home, key, keyring);
    expect(again.after.reveal()).toBe(first.after.reveal());
    await endKeyChange(SETTINGS, home, again, keyring);
    expect(await readKeys()).toEqual([first.after.reveal(), undefined]);
    expect(readdirSync(home)).toEqual(['vault.key']);
  });

  it('is not protected in another way while it is changed', async () => {
    await protectKeyFile(SETTINGS, home, next(), keyring);
    await beginKeyChange(SETTINGS, home, key, keyring);
    await expect(protectKeyFile(SETTINGS, home, null, keyring)).rejects.toMatchObject({ code: 'rotation_conflict' });
    expect(await keyChange(SETTINGS, home, keyring)).not.toBeNull();
  });

  it('does not open if one character of its file is another, and the two keys of a change are not the key', async () => {
    const protection = next();
    const text = await protect('vault.key', 'the content', protection);
    if (protection.by === 'keyring') await keyring.store(protection.id, protection.key);
    const unlock = { passphrase: () => SETTINGS.vaultPassphrase, keyring, kms: nodeKms({}) };
    expect(await openProtected('vault.key', text, unlock)).toBe('the content');
    await expect(openProtected('vault.key.change', text, unlock)).rejects.toThrow('vault.key.change');
    const at = text.indexOf('"sealed":"') + 12;
    const other = text[at] === 'A' ? 'B' : 'A';
    await expect(openProtected('vault.key', text.slice(0, at) + other + text.slice(at + 1), unlock)).rejects.toThrow(
      'vault.key',
    );
  });
});

describe('a passphrase', () => {
  beforeEach(() =>
    protectKeyFile({}, home, { by: 'passphrase', passphrase: new Secret(PASSPHRASE), cost: CHEAP }, keyring),
  );

  it('may be in a file, with the line break that editors add', async () => {
    const file = join(home, 'passphrase');
    writeFileSync(file, `${PASSPHRASE}\n`);
    expect((await fileKeys({ vaultPassphraseFile: file }, home)).masterKey?.reveal()).toBe(key.reveal());
  });

  it.each([
    ['is missing', {}, 'vault_passphrase_missing', /SVC_VAULT_PASSPHRASE_FILE/],
    ['is in a file that is not there', { vaultPassphraseFile: '/nowhere/p' }, 'vault_passphrase_missing', /ENOENT/],
    ['is wrong', { vaultPassphrase: new Secret('another passphrase') }, 'vault_passphrase_wrong', /does not open/],
  ])('that %s ends the start with what to do, and changes nothing', async (_, settings, code, message) => {
    const before = fileOf('vault.key');
    await expect(fileKeys(settings, home)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    await expect(protectKeyFile(settings, home, null, keyring)).rejects.toMatchObject({ code });
    expect(fileOf('vault.key')).toBe(before);
  });

  it('costs 128 MiB a try', async () => {
    const text = await protect('vault.key', 'x', { by: 'passphrase', passphrase: new Secret(PASSPHRASE) });
    expect(JSON.parse(text)).toMatchObject({ n: 131_072, r: 8, p: 1 });
  });

  it('is one, however its letters are composed', async () => {
    await protectKeyFile(
      SETTINGS,
      home,
      { by: 'passphrase', passphrase: new Secret('Grüße an alle Welt'), cost: CHEAP },
      keyring,
    );
    const decomposed = { vaultPassphrase: new Secret('Grüße an alle Welt'.normalize('NFD')) };
    expect((await fileKeys(decomposed, home)).masterKey?.reveal()).toBe(key.reveal());
  });

  it.each([
    ['a cost that fills the memory', (text: string) => text.replace('"n":1024', '"n":1073741824')],
    ['an unknown field', (text: string) => text.replace('{', '{"more":1,')],
    ['half of it', (text: string) => text.slice(0, 60)],
  ])('a file with %s is damaged', async (_, edit) => {
    writeFileSync(join(home, 'vault.key'), edit(fileOf('vault.key')));
    await expect(fileKeys(SETTINGS, home)).rejects.toMatchObject({ code: 'vault_key_damaged' });
  });
});

describe('the keyring', () => {
  it('is asked at each start: without it, the key does not open, and nothing is lost', async () => {
    await protectKeyFile({}, home, newKeyringKey(), keyring);
    const before = fileOf('vault.key');
    keyring.isThere = false;
    await expect(readKeys()).rejects.toMatchObject({ code: 'vault_keyring_unavailable' });
    keyring.isThere = true;
    keyring.keys.clear();
    await expect(readKeys()).rejects.toMatchObject({
      code: 'vault_keyring_unavailable',
      message: expect.stringContaining('on the machine where it was protected'),
    });
    expect(fileOf('vault.key')).toBe(before);
  });

  it('gets a name that no program takes for an option', () => {
    const ids = Array.from({ length: 200 }, () => newKeyringKey().id);
    expect(ids.filter((id) => !/^[0-9a-f]{32}$/.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('that loses what it is given changes nothing', async () => {
    keyring.store = () => Promise.resolve();
    await expect(protectKeyFile({}, home, newKeyringKey(), keyring)).rejects.toMatchObject({
      code: 'vault_keyring_unavailable',
    });
    expect(fileOf('vault.key')).toBe(`${key.reveal()}\n`);
  });
});

describe('the programs of a keyring, played by a stand-in', () => {
  const calls: { program: string; args: readonly string[]; input: string }[] = [];
  const answering =
    (code: number | string, stdout = '', stderr = ''): RunProgram =>
    (program, args, input) => {
      calls.push({ program, args, input });
      return Promise.resolve({ code, stdout, stderr });
    };
  beforeEach(() => {
    calls.length = 0;
  });

  test.each(['linux', 'darwin'] as const)('on %s a key is on no command line', async (platform) => {
    const ring = osKeyring(platform, answering(0, 'dGhlLWtleQ\n'));
    await ring.store('the-id', new Secret('the-key'));
    expect((await ring.find('the-id'))?.reveal()).toBe('dGhlLWtleQ');
    await ring.remove('the-id');
    expect(JSON.stringify(calls.map(({ args }) => args))).not.toContain('the-key');
    expect(calls[0]?.input).toContain('the-key');
    expect(new Set(calls.map(({ program }) => program))).toEqual(
      new Set([platform === 'darwin' ? 'security' : 'secret-tool']),
    );
  });

  test.each([
    ['linux', 1, ''],
    ['darwin', 44, 'security: SecKeychainSearchCopyNext: The specified item could not be found in the keychain.'],
  ] as const)('on %s an item that is not there is none', async (platform, code, stderr) => {
    expect(await osKeyring(platform, answering(code, '', stderr)).find('id')).toBeNull();
  });

  test.each([
    ['linux', 'ENOENT', '', /libsecret-tools.*svc vault protect passphrase/],
    ['linux', 1, 'secret-tool: Cannot autolaunch D-Bus without X11 $DISPLAY', /secret-tool failed \(1\).*unlock/],
    ['darwin', 51, 'the keychain is locked', /security failed \(51\)/],
  ] as const)('on %s, %s says what to do', async (platform, code, stderr, message) => {
    const ring = osKeyring(platform, answering(code, '', stderr));
    const refusal = { code: 'vault_keyring_unavailable', message: expect.stringMatching(message) };
    await expect(ring.find('id')).rejects.toMatchObject(refusal);
    await expect(ring.store('id', new Secret('k'))).rejects.toMatchObject(refusal);
  });
});
