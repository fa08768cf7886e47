import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { TokenPair } from '../../shared/wire/device.ts';
import { readPrivateFile, writePrivateFile } from '../../machine/state_file.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { parseJson } from '../../shared/model/json.ts';

const signInFile = z.strictObject({
  version: z.literal(1),
  /** The origin that these tokens are for, and no other is sent them. */
  control_url: z.string(),
  access_token: z.string(),
  /** By this machine's clock; milliseconds since the epoch. */
  access_expires_at_ms: z.number(),
  refresh_token: z.string(),
});
/** `$SVC_HOME/sign_in.json`, mode 0600: how `svc login` left this machine's user signed in. */
export type SignInFile = z.infer<typeof signInFile>;

const NAME = 'sign_in.json';

/** The sign-in of this state directory; null when nobody signed in. A damaged file is an error, and is never replaced. */
export function readSignIn(home: string): SignInFile | null {
  const path = join(home, NAME);
  const text = readPrivateFile(path);
  if (!text.ok) throw new CliError(EXIT.failed, text.error.message);
  if (text.value === null) return null;
  const parsed = signInFile.safeParse(parseJson(text.value));
  if (parsed.success) return parsed.data;
  throw new CliError(EXIT.failed, `${path} is damaged`, ['Delete it, and sign in again: svc login --control URL']);
}

/** The file for tokens that came now. */
export function signInOf(controlUrl: string, tokens: TokenPair, nowMs: number): SignInFile {
  return {
    version: 1,
    control_url: controlUrl,
    access_token: tokens.access_token,
    access_expires_at_ms: nowMs + tokens.expires_in * 1000,
    refresh_token: tokens.refresh_token,
  };
}

/** Writes the file as a whole, and to the disk: its refresh token replaces one that is used up. */
export async function writeSignIn(home: string, signIn: SignInFile): Promise<void> {
  await writePrivateFile(join(home, NAME), `${JSON.stringify(signIn, null, 2)}\n`);
}

export function removeSignIn(home: string): void {
  rmSync(join(home, NAME), { force: true });
}
