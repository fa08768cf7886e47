import { join } from 'node:path';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { z } from 'zod';
import { err, ok, type Result } from '../shared/model/result.ts';
import { id } from '../shared/wire/primitives.ts';
import { signingKey } from '../shared/wire/sidecars.ts';
import { corruptStateFile, readPrivateFile, writePrivateFile, type StateFileProblemReason } from './state_file.ts';
import type { Problem } from '../shared/model/problem.ts';

/** The sidecar's identity at its control plane, and the control plane's key that was pinned at enrolment. */
export interface Identity {
  readonly sidecarId: string;
  readonly controlPlaneId: string;
  /** Verifies the control plane's signatures. */
  readonly controlPlaneKey: CryptoKey;
  /** Signs this sidecar's calls, and the plans that are frozen here. */
  readonly signingKey: CryptoKey;
  /** Verifies signatures of the signing key. */
  readonly verifyingKey: CryptoKey;
  /** Opens data that is sealed to this sidecar. */
  readonly receivingKey: CryptoKey;
}

const privateSigningKey = z.object({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: z.string(), d: z.string() });
const privateReceivingKey = z.object({ kty: z.literal('OKP'), crv: z.literal('X25519'), x: z.string(), d: z.string() });

const identityRecord = z.strictObject({
  version: z.literal(1),
  sidecar_id: id('sdc'),
  control_plane_id: id('cpl'),
  control_plane_key: signingKey,
  signing_key: privateSigningKey,
  receiving_key: privateReceivingKey,
});
/** The format of `identity.json`. */
export type IdentityRecord = z.infer<typeof identityRecord>;

/** The two key pairs of a new sidecar, as private JWKs. */
export interface SidecarKeys {
  readonly signing: z.infer<typeof privateSigningKey>;
  readonly receiving: z.infer<typeof privateReceivingKey>;
}

const FIX =
  'Nothing was changed. Restore the file, or move it away and restart: the sidecar is then enrolled again, and you can revoke the old one in the list of sidecars.';

/** The path of a sidecar's identity. */
export function identityPath(sidecarDirectory: string): string {
  return join(sidecarDirectory, 'identity.json');
}

/** Reads `identity.json`; null if this sidecar was never enrolled. A damaged file is an error and is never replaced. */
export async function loadIdentity(path: string): Promise<Result<Identity | null, Problem<StateFileProblemReason>>> {
  const text = readPrivateFile(path);
  if (!text.ok) return text;
  if (text.value === null) return ok(null);
  const record = parseRecord(text.value);
  if (typeof record === 'string') return err(corruptStateFile(path, record, FIX));
  try {
    return ok(await identityOf(record));
  } catch {
    return err(corruptStateFile(path, 'a key in it is not a valid key', FIX));
  }
}

/** Writes `identity.json`. */
export async function saveIdentity(path: string, record: IdentityRecord): Promise<void> {
  await writePrivateFile(path, `${JSON.stringify(record, null, 2)}\n`);
}

/** Generates keys for a new sidecar: Ed25519 to sign, X25519 to receive. */
export async function generateSidecarKeys(): Promise<SidecarKeys> {
  const signing = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true });
  const receiving = await generateKeyPair('ECDH-ES', { crv: 'X25519', extractable: true });
  return {
    signing: privateSigningKey.parse(await exportJWK(signing.privateKey)),
    receiving: privateReceivingKey.parse(await exportJWK(receiving.privateKey)),
  };
}

/** Imports the keys of an {@link IdentityRecord}. Rejects if one is invalid. */
export async function identityOf(record: IdentityRecord): Promise<Identity> {
  const [controlPlane, signing, verifying, receiving] = await Promise.all([
    importKey({ kty: 'OKP', crv: 'Ed25519', x: record.control_plane_key.x }, 'EdDSA'),
    importKey(record.signing_key, 'EdDSA'),
    importKey({ kty: 'OKP', crv: 'Ed25519', x: record.signing_key.x }, 'EdDSA'),
    importKey(record.receiving_key, 'ECDH-ES'),
  ]);
  return {
    sidecarId: record.sidecar_id,
    controlPlaneId: record.control_plane_id,
    controlPlaneKey: controlPlane,
    signingKey: signing,
    verifyingKey: verifying,
    receivingKey: receiving,
  };
}

function parseRecord(text: string): IdentityRecord | string {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'it is not JSON';
  }
  const parsed = identityRecord.safeParse(json);
  if (parsed.success) return parsed.data;
  const field = parsed.error.issues[0]?.path.join('.') ?? '';
  return field === '' ? 'it is not an identity record' : `its field ${field} is missing or not valid`;
}

async function importKey(jwk: JWK, alg: string): Promise<CryptoKey> {
  const key = await importJWK(jwk, alg);
  if (key instanceof Uint8Array) throw new Error('a symmetric key where a key pair belongs');
  return key;
}
