import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { enrolReply, sidecarsPage } from '../../shared/wire/sidecars.ts';
import { generateSidecarKeys, identityPath, loadIdentity, saveIdentity } from '../../machine/sidecar_identity.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { type HttpClient, errorOfReply } from '../terminal/http_client.ts';
import { fetchAllPages } from '../terminal/fetch_all_pages.ts';

/** Enrols the sidecar of this state directory for the user, unless it is already enrolled. Returns its id. */
export async function enrolThisMachine(user: HttpClient, home: string, name: string): Promise<string> {
  const known = await ownSidecar(home);
  if (known !== null) return keepSidecar(user, home, known);
  const keys = await generateSidecarKeys();
  const body = {
    name,
    signing_key: { kty: 'OKP', crv: 'Ed25519', x: keys.signing.x },
    receiving_key: { kty: 'OKP', crv: 'X25519', x: keys.receiving.x },
  };
  const enrolled = await user.call('POST', '/v1/sidecars', enrolReply, { body });
  const record = { version: 1 as const, ...enrolled, signing_key: keys.signing, receiving_key: keys.receiving };
  await saveIdentity(identityPath(join(home, 'sidecar')), record);
  return enrolled.sidecar_id;
}

/** The id of the sidecar that is enrolled from this state directory; null if there is none. */
export async function ownSidecar(home: string): Promise<string | null> {
  const identity = await loadIdentity(identityPath(join(home, 'sidecar')));
  if (!identity.ok) throw new CliError(EXIT.failed, identity.error.message);
  return identity.value?.sidecarId ?? null;
}

async function keepSidecar(user: HttpClient, home: string, id: string): Promise<string> {
  const mine = await fetchAllPages(user, '/v1/sidecars', sidecarsPage, {});
  if (mine.some((sidecar) => sidecar.id === id && sidecar.revoked_at === null)) return id;
  throw new CliError(EXIT.failed, `the sidecar in ${home} belongs to another control plane or user, or was revoked`, [
    'You are signed in, but its policy and events must not mix with yours: use another state directory with --home DIR,',
    `or, if its data is no longer needed, move ${join(home, 'sidecar')} away and sign in again.`,
  ]);
}

/**
 * Revokes the sidecar of this state directory (skipped if the sign-in has ended) and deletes its keys and policy. Unsent events
 * are kept. Returns its id.
 */
export async function retireSidecar(user: HttpClient | null, home: string, nowMs: number): Promise<string | null> {
  const id = await ownSidecar(home);
  if (id === null) return null;
  if (user !== null) await revokeSidecar(user, id);
  deleteSidecarKeys(home, nowMs);
  return id;
}

/** Deletes the keys and the policy of the sidecar; the keys first, whatever becomes of the rest. Unsent events are kept. */
export function deleteSidecarKeys(home: string, nowMs: number): void {
  const directory = join(home, 'sidecar');
  rmSync(identityPath(directory), { force: true, recursive: true });
  const names = existsSync(directory) ? readdirSync(directory) : [];
  for (const name of names.filter((each) => each.startsWith('snapshot')))
    rmSync(join(directory, name), { force: true });
  const spool = join(directory, 'spool');
  if (holdsEvents(spool)) renameSync(spool, `${spool}.signed-out-${nowMs}`);
}

/** Revokes a sidecar at its control plane, which releases nothing more to it. One that is unknown there is revoked. */
export async function revokeSidecar(user: HttpClient, id: string, timeoutMs?: number): Promise<void> {
  const reply = await user.send('DELETE', `/v1/sidecars/${id}`, { ...(timeoutMs !== undefined && { timeoutMs }) });
  if (reply.status !== 204 && reply.status !== 404) throw errorOfReply('the control plane', reply);
}

/** True if the spool in this directory has events that the control plane has not accepted. */
export function holdsEvents(spool: string): boolean {
  const names = statSync(spool, { throwIfNoEntry: false }) === undefined ? [] : readdirSync(spool);
  return names.some((name) => statSync(join(spool, name)).size > 0);
}
