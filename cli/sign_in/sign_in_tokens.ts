import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tokenPair } from '../../shared/wire/device.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import { isAlive } from '../../machine/process_identity.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { httpClient, type RawReply, refusedBy } from '../terminal/http_client.ts';
import { readSignIn, type SignInFile, signInOf, writeSignIn } from './sign_in_file.ts';
import { errorCode } from '../../shared/model/error_code.ts';

/** A token that is over this soon is renewed first, so that it lasts for the call. */
const EARLY_MS = 30_000;
const LOCK_POLL_MS = 100;
const LOCK_POLLS = 300;

export const CONTROL_NAME = 'the control plane';
export const REACH_FIX = 'Is its address right, and is this machine online?';

/** The sign-in was ended, here or there, or is too old. */
export class SignInOver extends CliError {
  constructor(origin: string) {
    super(EXIT.failed, `the sign-in to ${origin} is over`, [`svc login --control ${origin}`]);
    this.name = 'SignInOver';
  }
}

/** The JSON of a reply; undefined when it is none. */
export function replyJson(reply: RawReply): unknown {
  try {
    return JSON.parse(reply.text);
  } catch {
    return undefined;
  }
}

/** The code of a refusal; null when the reply is none. */
export function refusalCode(reply: RawReply): string | null {
  const parsed = errorBody.safeParse(replyJson(reply));
  return parsed.success ? parsed.data.error.code : null;
}

/**
 * An access token of a sign-in that is good now, and another one than was refused. A refresh token is good once, and a second use ends the sign-in: of several
 * `svc` that run at one time, one renews the tokens and the others take what it wrote.
 */
export async function accessToken(
  context: CliContext,
  home: string,
  controlUrl: string,
  refused: string | null = null,
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
  const client = httpClient({ origin, token: null, name: CONTROL_NAME, fetch: context.fetch, startFix: REACH_FIX });
  const body = { refresh_token: refreshToken };
  const reply = await client.send('POST', '/auth/refresh', { body });
  if (refusalCode(reply) === 'sign_in_over') throw new SignInOver(origin);
  const tokens = tokenPair.safeParse(replyJson(reply));
  if (!tokens.success) throw refusedBy(CONTROL_NAME, reply);
  const next = signInOf(origin, tokens.data, context.now());
  await writeSignIn(home, next);
  return next.access_token;
}

/** `$SVC_HOME/sign_in.lock`: who renews the tokens. The lock of a process that is gone counts for nothing. */
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
  throw new CliError(EXIT.failed, `another svc has been renewing the sign-in for long (${path})`, [
    'If no other svc runs, delete that file.',
  ]);
}

/** A link appears whole or not at all. */
function tryLink(own: string, path: string): boolean {
  try {
    linkSync(own, path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Moves a lock away whose process is gone, unless another process took it over in that moment. */
function clearStale(path: string): void {
  if (isHeld(path)) return;
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    // It was released, or another process moved it away.
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
    // It was released in this moment: there is nothing to clear.
    return true;
  }
}
