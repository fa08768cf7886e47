import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { succeeds } from '../../tools/system_parts.mjs';
import { osKeyring } from '../../worker/entries/os_keyring.ts';
import { newKeyringKey } from '../../worker/entries/protected_key.ts';
import { beginKeyChange, endKeyChange, fileKeys, protectKeyFile } from '../../worker/entries/vault_key_files.ts';
import { newMasterKey } from './in_process.ts';

// The master key behind a real gnome-keyring, which secret-tool asks over D-Bus.

const hasKeyring = succeeds('command -v secret-tool && command -v gnome-keyring-daemon && command -v dbus-daemon');
const key = newMasterKey();
let home: string;
const keyFile = (): string => readFileSync(join(home, 'vault.key'), 'utf8');

describe.skipIf(!hasKeyring)('a master key behind gnome-keyring', () => {
  let folder: string;
  let stop: () => void;
  const before = { ...process.env };

  beforeEach(async () => {
    home = mkdtempSync(join(tmpdir(), 'svc-protected-'));
    writeFileSync(join(home, 'vault.key'), `${key.reveal()}\n`, { mode: 0o600 });
    folder = mkdtempSync(join(tmpdir(), 'svc-keyring-'));
    Object.assign(process.env, { HOME: folder, XDG_RUNTIME_DIR: folder });
    const bus = spawn('dbus-daemon', ['--session', '--nofork', '--print-address=1'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    stop = () => bus.kill();
    const address = await new Promise<string>((resolve) => bus.stdout.once('data', (text) => resolve(String(text))));
    process.env['DBUS_SESSION_BUS_ADDRESS'] = address.trim();
    execFileSync('gnome-keyring-daemon', ['--unlock', '--components=secrets', '--daemonize'], {
      input: 'login password',
      stdio: ['pipe', 'ignore', 'ignore'],
    });
  });
  afterEach(() => {
    // Its keyring ends with its bus.
    stop();
    for (const name of ['HOME', 'XDG_RUNTIME_DIR', 'DBUS_SESSION_BUS_ADDRESS']) {
      if (before[name] === undefined) Reflect.deleteProperty(process.env, name);
      else process.env[name] = before[name];
    }
    for (const each of [folder, home]) rmSync(each, { recursive: true, force: true });
  });

  it('opens with it, also while it is changed, and leaves nothing there at the end', async () => {
    await protectKeyFile({}, home, newKeyringKey());
    expect(keyFile()).not.toContain(key.reveal());
    expect((await fileKeys({}, home)).masterKey?.reveal()).toBe(key.reveal());
    const change = await beginKeyChange({}, home, key);
    await endKeyChange({}, home, change);
    expect((await fileKeys({}, home)).masterKey?.reveal()).toBe(change.after.reveal());
    const { id } = z.object({ id: z.string() }).parse(JSON.parse(keyFile()));
    await protectKeyFile({}, home, null);
    expect(await osKeyring().find(id)).toBeNull();
  });

  it('does not open without it, and says what to do', async () => {
    await protectKeyFile({}, home, newKeyringKey());
    stop();
    process.env['DBUS_SESSION_BUS_ADDRESS'] = `unix:path=${join(folder, 'nothing')}`;
    await expect(fileKeys({}, home)).rejects.toMatchObject({
      code: 'vault_keyring_unavailable',
      message: expect.stringContaining('unlock the keyring'),
    });
  });
});
