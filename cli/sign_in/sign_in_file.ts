import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { TokenPair } from '../../shared/wire/device.ts';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { parseJson } from '../../shared/model/json.ts';
import { isFiniteNumber, isText, readExactFields } from '../read_fields.ts';

/** `$SVC_HOME/sign_in.json`, mode 0600: the sign-in that `svc login` stored. */
export interface SignInFile {
  readonly version: 1;
  /** The only origin that receives these tokens. */
  readonly control_url: string;
  readonly access_token: string;
  /** Milliseconds since the epoch, by this machine's clock. */
  readonly access_expires_at_ms: number;
  readonly refresh_token: string;
}

const NAME = 'sign_in.json';

/** The sign-in of this state directory; null if there is none. A damaged file is an error and is never replaced. */
export function readSignIn(home: string): SignInFile | null {
  // What is no directory holds no sign-in: who creates the state directory says so.
  if (!existsSync(home) || !statSync(home).isDirectory()) return null;
  const path = join(home, NAME);
  const text = readPrivateFile(path);
  if (!text.ok) throw new CliError(EXIT.failed, text.error.message);
  if (text.value === null) return null;
  const read = readExactFields<SignInFile>(parseJson(text.value), {
    version: (version) => version === 1,
    control_url: isText,
    access_token: isText,
    access_expires_at_ms: isFiniteNumber,
    refresh_token: isText,
  });
  if (read !== null) return read;
  throw new CliError(EXIT.failed, `${path} is damaged`, ['Delete it, and sign in again: svc login --control URL']);
}

/** The file content for new tokens. */
export function signInOf(controlUrl: string, tokens: TokenPair, nowMs: number): SignInFile {
  return {
    version: 1,
    control_url: controlUrl,
    access_token: tokens.access_token,
    access_expires_at_ms: nowMs + tokens.expires_in * 1000,
    refresh_token: tokens.refresh_token,
  };
}

/** Writes the file atomically and syncs it to disk: its refresh token replaces one that is already used. */
export async function writeSignIn(home: string, signIn: SignInFile): Promise<void> {
  await writePrivateFile(join(home, NAME), `${JSON.stringify(signIn, null, 2)}\n`);
}

export function removeSignIn(home: string): void {
  rmSync(join(home, NAME), { force: true });
}
