import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../machine/process_identity.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { httpClient, errorOfReply } from '../terminal/http_client.ts';
import { readSignIn, type SignInFile, signInOf, writeSignIn } from './sign_in_file.ts';
import { errorCode } from '../../shared/model/error_code.ts';

/** A token that expires within this time is renewed first, so that it lasts for the call. */
const EARLY_MS = 30_000;
const LOCK_POLL_MS = 100;
const LOCK_POLLS = 300;

export const CONTROL_NAME = 'the control plane';
export const REACH_FIX = 'Check the address, and that this machine is online.';

/** The sign-in was ended, here or elsewhere, or has expired. */
export class SignInOver extends CliError {
  constructor(origin: string) {
    super(EXIT.failed, `the sign-in to ${origin} has ended`, [`svc login --control ${origin}`]);
    this.name = 'SignInOver';
  }
}

/**
 * Returns a valid access token that differs from the refused one. A refresh token can be used only once, and a second use ends
 * the sign-in. If several `svc` run at the same time, one renews the tokens and the others use its result.
 */
export async function accessToken(
  context: CliContext,
  home: string,
  controlUrl: string,
  refused: string | null,
): Promise<string> {
  const isGood = (signIn: SignInFile) => signIn.access_token !== refused && isFresh(context, signIn);
  const found = requireSignIn(home, controlUrl);
  if (isGood(found)) return found.access_token;
  const release = await takeLock(context, home);
  try {
    const latest = requireSignIn(home, controlUrl);
    return isGood(latest) ? latest.access_token : await renew(context, home, latest);
  } finally {
    release();
  }
}

function requireSignIn(home: string, controlUrl: string): SignInFile {
  const found = readSignIn(home);
  if (found !== null && found.control_url === controlUrl) return found;
  throw new CliError(EXIT.failed, `not signed in to ${controlUrl}`, [`svc login --control ${controlUrl}`]);
}

function isFresh(context: CliContext, signIn: SignInFile): boolean {
  return signIn.access_expires_at_ms - EARLY_MS > context.now();
}

async function renew(context: CliContext, home: string, signIn: SignInFile): Promise<string> {
  const { control_url: origin, refresh_token: refreshToken } = signIn;
  // Loaded on use, so that a command whose token is still good starts faster.
  const [{ refusalCode, replyJson }, { tokenPair }] = await Promise.all([
    import('./refusal_code.ts'),
    import('../../shared/wire/device.ts'),
  ]);
  const client = httpClient({ origin, token: null, name: CONTROL_NAME, fetch: context.fetch, startFix: REACH_FIX });
  const body = { refresh_token: refreshToken };
  const reply = await client.send('POST', '/auth/refresh', { body });
  if (refusalCode(reply) === 'sign_in_over') throw new SignInOver(origin);
  const tokens = tokenPair.safeParse(replyJson(reply));
  if (!tokens.success) throw errorOfReply(CONTROL_NAME, reply);
  const next = signInOf(origin, tokens.data, context.now());
  await writeSignIn(home, next);
  return next.access_token;
}

/** `$SVC_HOME/sign_in.lock`: held by the process that renews the tokens. The lock of a dead process is ignored. */
async function takeLock(context: CliContext, home: string): Promise<() => void> {
  const path = join(home, 'sign_in.lock');
  const own = `${path}.${process.pid}`;
  writeFileSync(own, String(process.pid), { mode: 0o600 });
  try {
    for (let poll = 0; poll < LOCK_POLLS && !context.stop.aborted; poll += 1) {
      if (tryLink(own, path)) return () => rmSync(path, { force: true });
      clearStale(path);
      await context.pause(LOCK_POLL_MS, context.stop);
    }
  } finally {
    rmSync(own, { force: true });
  }
  throw new CliError(EXIT.failed, `another svc is still renewing the sign-in (${path})`, [
    'If no other svc is running, delete that file.',
  ]);
}

/** A hard link appears atomically. */
function tryLink(own: string, path: string): boolean {
  try {
    linkSync(own, path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Moves away the lock of a dead process, unless another process has just taken it over. */
function clearStale(path: string): void {
  if (isHeld(path)) return;
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    // Already released, or moved away by another process.
    return;
  }
  if (isHeld(aside)) renameSync(aside, path);
  else rmSync(aside, { force: true });
}

function isHeld(path: string): boolean {
  try {
    const pid = Number(readFileSync(path, 'utf8'));
    return Number.isInteger(pid) && pid > 0 && isAlive(pid);
  } catch {
    // Released just now: nothing to clear.
    return true;
  }
}
