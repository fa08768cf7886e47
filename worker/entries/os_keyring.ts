import { execFile } from 'node:child_process';
import { Secret } from '../../shared/model/secret.ts';
import { ProgramError } from './program_error.ts';

/** The keyring of the desktop session or the login, which keeps one key for each vault. */
export interface Keyring {
  /** Null: it has no such key. */
  find(id: string): Promise<Secret | null>;
  store(id: string, key: Secret): Promise<void>;
  remove(id: string): Promise<void>;
}

interface Ran {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of the system, with a text on its input. */
export type RunProgram = (program: string, args: readonly string[], input: string) => Promise<Ran>;

const SERVICE = 'svc-vault';
const LABEL = 'svc: master key of the vault';
/** A keyring that is locked asks its person, who may be away. */
const TIMEOUT_MS = 60_000;
const MAX_BYTES = 64 * 1024;
/** Nothing of a project's folder is run. */
const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin';
const NOT_FOUND_ON_MACOS = 44;

/** Secret Service through `secret-tool` of libsecret; on macOS the login keychain through `security`. Values go by their input only. */
export function osKeyring(platform: NodeJS.Platform = process.platform, run: RunProgram = runProgram): Keyring {
  return platform === 'darwin' ? macKeychain(run) : secretService(run);
}

function secretService(run: RunProgram): Keyring {
  return {
    async find(id) {
      const ran = await run('secret-tool', ['lookup', ...attributes(id)], '');
      if (ran.code === 0 && ran.stdout !== '') return new Secret(ran.stdout.trimEnd());
      // It says nothing where the keyring answers and has no such item.
      if (ran.code === 1 && ran.stderr === '') return null;
      throw unavailable(ran, 'secret-tool', 'install libsecret-tools (on Debian: apt-get install libsecret-tools)');
    },
    async store(id, key) {
      const ran = await run('secret-tool', ['store', `--label=${LABEL}`, ...attributes(id)], key.reveal());
      if (ran.code !== 0) {
        throw unavailable(ran, 'secret-tool', 'install libsecret-tools (on Debian: apt-get install libsecret-tools)');
      }
    },
    async remove(id) {
      await run('secret-tool', ['clear', ...attributes(id)], '');
    },
  };
}

function attributes(id: string): string[] {
  return ['service', SERVICE, 'id', id];
}

function macKeychain(run: RunProgram): Keyring {
  return {
    async find(id) {
      const ran = await run('security', ['find-generic-password', '-s', SERVICE, '-a', id, '-w'], '');
      if (ran.code === 0 && ran.stdout !== '') return new Secret(ran.stdout.trimEnd());
      if (ran.code === NOT_FOUND_ON_MACOS) return null;
      throw unavailable(ran, 'security', 'it is part of macOS');
    },
    async store(id, key) {
      // Interactive, because every process of the machine can read its arguments. Ids and keys are base64url.
      const line = `add-generic-password -U -s ${SERVICE} -a ${id} -l "${LABEL}" -w ${key.reveal()}\n`;
      const ran = await run('security', ['-i'], line);
      if (ran.code !== 0) throw unavailable(ran, 'security', 'it is part of macOS');
    },
    async remove(id) {
      await run('security', ['delete-generic-password', '-s', SERVICE, '-a', id], '');
    },
  };
}

function unavailable({ code }: Ran, program: string, install: string): ProgramError {
  const why = code === 'ENOENT' ? `there is no ${program}: ${install}` : `${program} failed (${code})`;
  const message = `the keyring cannot be used, because ${why}. Sign in to the desktop, unlock the keyring, and start svc from that session; a machine without one can use a passphrase (svc vault protect passphrase)`;
  return new ProgramError('vault_keyring_unavailable', message);
}

function runProgram(program: string, args: readonly string[], input: string): Promise<Ran> {
  const { HOME, USER, LOGNAME, XDG_RUNTIME_DIR, DBUS_SESSION_BUS_ADDRESS, DISPLAY, WAYLAND_DISPLAY } = process.env;
  const session = { HOME, USER, LOGNAME, XDG_RUNTIME_DIR, DBUS_SESSION_BUS_ADDRESS, DISPLAY, WAYLAND_DISPLAY };
  const options = { env: { ...session, PATH: SYSTEM_PATH }, timeout: TIMEOUT_MS, maxBuffer: MAX_BYTES, cwd: '/' };
  return new Promise((resolve) => {
    const child = execFile(program, [...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? 'it was stopped'), stdout, stderr });
    });
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}
