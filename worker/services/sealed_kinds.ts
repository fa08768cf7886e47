import type { Secret } from '../../shared/model/secret.ts';
import { oidcSealPlace } from '../sign_in/providers/enterprise_oidc.ts';
import type { Database, Statement } from '../store/database.ts';
import {
  resealClient,
  resealFlow,
  resealSecret,
  resealSigningKey,
  type RowPage,
  sealedClients,
  sealedFlows,
  sealedSecrets,
  sealedSigningKeys,
} from '../store/sealed_rows.ts';
import { accessKeyPlace } from '../tokens/access_keys.ts';
import { sealPlace } from './oauth_flow.ts';
import type { SealPlace, Vault } from './vault.ts';

/** A value that the vault sealed, where it is stored. */
export interface Sealed {
  /** Its key in the order of its kind. */
  readonly id: string;
  readonly place: SealPlace;
  readonly text: string;
  /** Whether all that is stored beside it is of this vault's key too. */
  isOf(vault: Vault): boolean;
  /** What puts it in place of the text, if that is still there: in a list, for a promise of a statement would run it. */
  reseal(vault: Vault, secret: Secret): Promise<readonly Statement[]>;
}

/** One kind of sealed value, a page of them at a time. */
export interface SealedKind {
  readonly name: string;
  page(database: Database, page: RowPage): Promise<readonly Sealed[]>;
}

/** Every kind of value that the vault seals in a table; those of the installation are not rows of it. */
export const SEALED_KINDS: readonly SealedKind[] = [
  { name: 'secrets', page: secretPage },
  {
    name: 'access_token_keys',
    page: async (database, page) =>
      (await sealedSigningKeys(database, page)).map((row) =>
        sealedText(row.id, accessKeyPlace(row.id), row.sealedPrivateKey, (text) =>
          resealSigningKey(database, row, text),
        ),
      ),
  },
  {
    name: 'oauth_flows',
    page: async (database, page) =>
      (await sealedFlows(database, page)).map((row) =>
        sealedText(row.id, sealPlace(row), row.sealed, (text) => resealFlow(database, row, text)),
      ),
  },
  {
    name: 'enterprise_clients',
    page: async (database, page) =>
      (await sealedClients(database, page)).map((row) => {
        const { enterpriseId: id, sealedSecret } = row;
        return sealedText(id, oidcSealPlace(id), sealedSecret, (text) => resealClient(database, row, text));
      }),
  },
];

/** Secrets have a fingerprint beside them, under the same master key. */
async function secretPage(database: Database, page: RowPage): Promise<Sealed[]> {
  const rows = await sealedSecrets(database, page);
  return rows.map((row) => {
    const place = { owner: row.ownerId, path: row.path, version: row.version };
    return {
      id: row.id,
      place,
      text: row.sealed,
      isOf: (vault) => row.fingerprint?.startsWith(vault.fingerprintMark) ?? false,
      async reseal(vault, secret) {
        const sealed = await vault.seal(place, secret);
        const fingerprint = await vault.fingerprint(row.ownerId, secret);
        return [resealSecret(database, row, { sealed, fingerprint })];
      },
    };
  });
}

function sealedText(id: string, place: SealPlace, text: string, replace: (text: string) => Statement): Sealed {
  return {
    id,
    place,
    text,
    isOf: () => true,
    reseal: async (vault, secret) => [replace(await vault.seal(place, secret))],
  };
}
