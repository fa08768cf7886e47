import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { expect } from 'vitest';
import { z } from 'zod';
import { Secret } from '../../shared/model/secret.ts';
import type { Caller } from '../../worker/kernel/caller.ts';
import { SYSTEM_CLOCK } from '../../worker/kernel/clock.ts';
import { openDatabase } from '../../worker/store/database.ts';
import { freePort } from '../support/free_port.ts';
import { CONTROL_PLANE } from '../support/program.ts';
import { signInBrowser } from './hosted_users.ts';
import { addUser, startInProcess } from './in_process.ts';
import { listening, run, type Running, until, waitForEnd } from './programs.ts';

/** A control plane on Node that is not local, with one person whose browser is signed in. */
export interface HostedControlPlane {
  /** Where it listens. */
  readonly url: string;
  readonly user: Caller;
  /** Of the person's browser. */
  readonly cookie: string;
  readonly home: string;
  /** What it has printed. */
  output(): string;
  /** Approves the sign-in that `svc login` waits for in the browser; returns the page that asked. */
  approve(login: Running): Promise<string>;
  stop(): Promise<void>;
}

/** `publicUrl` is where people and machines reach it: by default where it listens. */
export async function startHostedControlPlane(publicUrl?: string): Promise<HostedControlPlane> {
  const home = await mkdtemp(join(tmpdir(), 'svc-hosted-'));
  const key = randomBytes(32).toString('base64url');
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const reachedAt = publicUrl ?? url;
  const settings = { SVC_VAULT_KEY: key, SVC_PUBLIC_URL: reachedAt, SVC_ALLOWED_HOSTS: new URL(reachedAt).host };
  const control = run('node', [...CONTROL_PLANE, '--home', home, '--port', String(port)], settings);
  await until(control, listening(control));
  // A second worker on the same database signs the browser in, like a provider.
  const client = createClient({ url: `file:${join(home, 'control.db')}`, timeout: 5_000 });
  const shared = {
    database: openDatabase(client),
    clock: SYSTEM_CLOCK,
    masterKey: new Secret(key),
    publicUrl: reachedAt,
  };
  const beside = await startInProcess({ ...shared, localKey: null });
  const user = await addUser(beside.context, null);
  const cookie = await signInBrowser(beside, user);
  const forwarded = { 'x-forwarded-host': new URL(reachedAt).host, 'x-forwarded-proto': 'https' };
  const headers = { cookie, origin: reachedAt, ...(reachedAt !== url && forwarded) };
  const decide = async (path: string, code: string): Promise<string> => {
    const body = new URLSearchParams({ user_code: code, decision: 'approve' });
    const reply = await fetch(url + path, { method: 'POST', headers, body });
    expect(reply.status).toBe(200);
    return reply.text();
  };
  return {
    url,
    user,
    cookie,
    home,
    output: () => control.output(),
    async approve(login) {
      const code = await until(login, async () => /\b[A-Z]{4}-[A-Z]{4}\b/.exec(login.output())?.[0] ?? null);
      const question = await decide('/device', code);
      await decide('/device/decide', code);
      return question;
    },
    async stop() {
      await beside.stop();
      await control.stop();
      await rm(home, { recursive: true, force: true });
    },
  };
}

const status = z.object({ sidecar: z.object({ channel: z.object({ state: z.string() }) }) });

/** Starts the sidecar of a machine, whose command `svc` starts, and waits until its channel is up. */
export async function startSidecar(
  svc: (...args: string[]) => Running,
  flags: readonly string[] = [],
): Promise<Running> {
  const sidecar = svc('sidecar', '--proxy-port', '0', ...flags);
  await until(sidecar, async () => (sidecar.output().includes('the sidecar listens on') ? true : null));
  await until(sidecar, async () => {
    const read = status.safeParse(JSON.parse(await waitForEnd(svc('--json', 'status'))));
    return read.success && read.data.sidecar.channel.state === 'up' ? true : null;
  });
  return sidecar;
}
