import { compactVerify, importJWK, type CryptoKey } from 'jose';
import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { PLAN_LOCK_TYP, planLockPayload, type PlanLockPayload } from '../../shared/wire/plan/plan_lock.ts';
import { id } from '../../shared/wire/primitives.ts';
import { identityPath } from '../../machine/sidecar_identity.ts';
import { readPrivateFile } from '../../machine/state_file.ts';

/** The sidecar whose signature is required on a lock, and its public key. */
export interface LockKey {
  readonly sidecarId: string;
  readonly publicKey: CryptoKey;
}

/** The public parts of `identity.json`. */
const publicIdentity = z.object({
  sidecar_id: id('sdc'),
  signing_key: z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string() }),
});

const decoder = new TextDecoder('utf-8', { fatal: true });

/** The key of the sidecar that was enrolled in this directory, which need not run. The error is a sentence. */
export async function readLockKey(sidecarDirectory: string): Promise<Result<LockKey, string>> {
  const path = identityPath(sidecarDirectory);
  const text = readPrivateFile(path);
  if (!text.ok) return err(text.error.message);
  if (text.value === null) return err(`no sidecar was enrolled here (${path} is missing), so no lock can be checked`);
  try {
    const record = publicIdentity.parse(JSON.parse(text.value));
    const { kty, crv, x } = record.signing_key;
    const publicKey = await importJWK({ kty, crv, x }, 'EdDSA');
    if (publicKey instanceof Uint8Array) throw new TypeError('a symmetric key');
    return ok({ sidecarId: record.sidecar_id, publicKey });
  } catch {
    return err(`${path} is damaged, so no lock can be checked`);
  }
}

/** The signed content of a lock, if this sidecar signed it. The error is the rest of a sentence. */
export async function openLock(key: LockKey, jws: string): Promise<Result<PlanLockPayload, string>> {
  const opened = await verifyPayload(key, jws);
  if (opened === null) return err('is not one that the sidecar of this machine made over a lock');
  const parsed = planLockPayload.safeParse(opened);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return err(`covers a lock of another form than this svc knows (${issue?.path.join('.') ?? ''})`);
  }
  if (parsed.data.sidecar_id === key.sidecarId) return ok(parsed.data);
  return err(`names ${parsed.data.sidecar_id}, and the sidecar of this machine is ${key.sidecarId}`);
}

async function verifyPayload(key: LockKey, jws: string): Promise<unknown> {
  try {
    const { payload, protectedHeader } = await compactVerify(jws, key.publicKey, { algorithms: ['EdDSA'] });
    return protectedHeader.typ === PLAN_LOCK_TYP ? JSON.parse(decoder.decode(payload)) : null;
  } catch {
    return null;
  }
}
