import type { Secret } from '../../shared/model/secret.ts';
import { oidcSealPlace } from '../sign_in/providers/enterprise_provider.ts';
import type { AuditBeginningRow } from '../store/audit/audit_beginnings.ts';
import type { AuditHeadRow } from '../store/audit/audit_events.ts';
import type { Database, Statement } from '../store/database.ts';
import { readInstallation, replaceInstalled } from '../store/installation.ts';
import {
  resealBeginning,
  resealClient,
  resealFlow,
  resealHead,
  resealLogin,
  resealSecret,
  resealPushKey,
  resealSink,
  resealSubscription,
  resealSigningKey,
  type RowPage,
  listSealedBeginnings,
  listSealedClients,
  listSealedFlows,
  listSealedHeads,
  listSealedLogins,
  listSealedPushKeys,
  listSealedSecrets,
  listSealedSinks,
  listSealedSubscriptions,
  listSealedSigningKeys,
} from '../store/sealed_rows.ts';
import { listSealedSources, resealSource } from '../store/sources/secret_sources.ts';
import type { SecretRow } from '../store/secrets.ts';
import { accessKeyPlace } from '../tokens/access_keys.ts';
import { isSealedBeginning, isSealedHead, sealBeginning, sealHead } from '../kernel/audit_seals.ts';
import { CONTROL_KEY_PLACE } from '../kernel/control_key.ts';
import { loginPlace } from '../services/connectors/pending_logins.ts';
import { PUSH_KEY_PLACE } from '../services/push/push_key.ts';
import { subscriptionPlace } from '../services/push/push_subscriptions.ts';
import { sinkPlace } from '../services/sinks/sink_target.ts';
import { sealPlace } from '../services/oauth/oauth_flow.ts';
import { keyPlace, revocationPlace, valuePlace } from '../services/sources/sourced_secret.ts';
import type { SealPlace, Vault } from '../kernel/vault.ts';

/** The vaults of two master keys: the current one, and the one it replaces, if any. */
export interface SealingKeys {
  readonly before: Vault | null;
  readonly after: Vault;
}

/** The key that opens a value. A value that neither opens was damaged or altered. */
type Examined =
  | { readonly state: 'current' | 'damaged' }
  /** `reseal` seals it with the current key, unless the row was changed since. */
  | { readonly state: 'previous'; reseal(): Promise<readonly Statement[]> };

/** A sealed value in the database. */
export interface SealedRow {
  /** Its key in the order of its kind. */
  readonly id: string;
  examine(keys: SealingKeys): Promise<Examined>;
}

/** One kind of sealed value, read in pages. */
export interface SealedKind {
  readonly name: string;
  /** Its columns, as `table.column`. */
  readonly columns: readonly string[];
  page(database: Database, page: RowPage): Promise<readonly SealedRow[]>;
}

/** Every kind of value that a master key change seals again, except the mark of the current key. */
export const SEALED_KINDS: readonly SealedKind[] = [
  { name: 'signing_key', columns: ['installation.value'], page: signingKeyPage },
  { name: 'secrets', columns: ['secrets.sealed', 'secrets.fingerprint'], page: secretPage },
  {
    name: 'access_token_keys',
    columns: ['signing_keys.sealed_private_key'],
    page: async (database, page) =>
      (await listSealedSigningKeys(database, page)).map((row) =>
        toSealedText(row.id, accessKeyPlace(row.id), row.sealedPrivateKey, (text) =>
          resealSigningKey(database, row, text),
        ),
      ),
  },
  {
    name: 'oauth_flows',
    columns: ['oauth_flows.sealed'],
    page: async (database, page) =>
      (await listSealedFlows(database, page)).map((row) =>
        toSealedText(row.id, sealPlace(row), row.sealed, (text) => resealFlow(database, row, text)),
      ),
  },
  {
    name: 'pending_logins',
    columns: ['pending_logins.sealed'],
    page: async (database, page) =>
      (await listSealedLogins(database, page)).map((row) =>
        toSealedText(row.id, loginPlace(row), row.sealed, (text) => resealLogin(database, row, text)),
      ),
  },
  {
    name: 'source_keys',
    columns: ['secret_sources.sealed_material'],
    page: async (database, page) =>
      (await listSealedSources(database, page)).map(({ source, secret }) => {
        const before = source.sealedMaterial;
        return toSealedText(source.secretId, keyPlace(secret), before, (after) =>
          resealSource(database, source, 'sealedMaterial', { before, after }),
        );
      }),
  },
  {
    name: 'minted_values',
    columns: ['secret_sources.sealed_value'],
    page: (database, page) => mintedPage(database, page, { column: 'sealedValue', placeOf: valuePlace }),
  },
  {
    name: 'minted_revocations',
    columns: ['secret_sources.sealed_revocation'],
    page: (database, page) => mintedPage(database, page, { column: 'sealedRevocation', placeOf: revocationPlace }),
  },
  {
    name: 'enterprise_clients',
    columns: ['enterprise_oidc.sealed_secret'],
    page: async (database, page) =>
      (await listSealedClients(database, page)).map((row) => {
        const { enterpriseId: id, sealedSecret } = row;
        return toSealedText(id, oidcSealPlace(id), sealedSecret, (text) => resealClient(database, row, text));
      }),
  },
  {
    name: 'sinks',
    columns: ['audit_sinks.sealed'],
    page: async (database, page) =>
      (await listSealedSinks(database, page)).map((row) =>
        toSealedText(row.id, sinkPlace(row), row.sealed, (text) => resealSink(database, row, text)),
      ),
  },
  {
    name: 'push_keys',
    columns: ['push_keys.sealed_private_key'],
    page: async (database, page) =>
      (await listSealedPushKeys(database, page)).map((row) =>
        toSealedText(row.id, PUSH_KEY_PLACE, row.sealedPrivateKey, (text) => resealPushKey(database, row, text)),
      ),
  },
  {
    name: 'push_subscriptions',
    columns: ['push_subscriptions.sealed'],
    page: async (database, page) =>
      (await listSealedSubscriptions(database, page)).map((row) =>
        toSealedText(row.sessionId, subscriptionPlace(row), row.sealed, (text) =>
          resealSubscription(database, row, text),
        ),
      ),
  },
  {
    name: 'audit_heads',
    columns: ['audit_heads.seal'],
    page: async (database, page) => (await listSealedHeads(database, page)).map((row) => toSealedHead(database, row)),
  },
  {
    name: 'audit_beginnings',
    columns: ['audit_beginnings.seal'],
    page: async (database, page) =>
      (await listSealedBeginnings(database, page)).map((row) => toSealedBeginning(database, row)),
  },
];

/** The control plane's own signing key is a single value of the installation. */
async function signingKeyPage(database: Database, { after }: RowPage): Promise<SealedRow[]> {
  if (after !== '') return [];
  const text = (await readInstallation(database)).get('signing_key_sealed') ?? '';
  return [
    toSealedText('signing_key', CONTROL_KEY_PLACE, text, (anew) =>
      replaceInstalled(database, 'signing_key_sealed', { before: text, after: anew }),
    ),
  ];
}

interface MintedColumn {
  readonly column: 'sealedValue' | 'sealedRevocation';
  readonly placeOf: typeof valuePlace;
}

/** A source may hold no value now. */
async function mintedPage(database: Database, page: RowPage, { column, placeOf }: MintedColumn): Promise<SealedRow[]> {
  return (await listSealedSources(database, page)).map(({ source, secret }) => {
    const before = source[column];
    if (before === null) return { id: source.secretId, examine: async () => ({ state: 'current' }) };
    return toSealedText(source.secretId, placeOf({ secret }), before, (after) =>
      resealSource(database, source, column, { before, after }),
    );
  });
}

async function secretPage(database: Database, page: RowPage): Promise<SealedRow[]> {
  return (await listSealedSecrets(database, page)).map((row) => toSealedSecret(database, row));
}

/** A secret may have a fingerprint made with the same master key. */
function toSealedSecret(database: Database, row: SecretRow): SealedRow {
  const place = { owner: row.ownerId, path: row.path, version: row.version };
  return {
    id: row.id,
    async examine({ before, after }) {
      const already = await after.open(place, row.sealed);
      const isOfKey = row.fingerprint?.startsWith(after.fingerprintMark) ?? true;
      if (already !== null && isOfKey) return { state: 'current' };
      const secret = already ?? (before && (await before.open(place, row.sealed)));
      if (secret === null) return { state: 'damaged' };
      return { state: 'previous', reseal: () => secretAnew(database, row, after, secret) };
    },
  };
}

async function secretAnew(database: Database, row: SecretRow, vault: Vault, secret: Secret): Promise<Statement[]> {
  const sealed = await vault.seal({ owner: row.ownerId, path: row.path, version: row.version }, secret);
  return [resealSecret(database, row, { sealed, fingerprint: await vault.fingerprint(row.ownerId, secret) })];
}

function toSealedText(id: string, place: SealPlace, text: string, replace: (text: string) => Statement): SealedRow {
  return {
    id,
    async examine({ before, after }) {
      if ((await after.open(place, text)) !== null) return { state: 'current' };
      const secret = before && (await before.open(place, text));
      if (secret === null) return { state: 'damaged' };
      return { state: 'previous', reseal: async () => [replace(await after.seal(place, secret))] };
    },
  };
}

function toSealedHead(database: Database, row: AuditHeadRow): SealedRow {
  return toSealedMac(row.writer, {
    isOf: (vault) => isSealedHead(vault, row),
    replace: async (vault) => [resealHead(database, row, await sealHead(vault, row))],
  });
}

function toSealedBeginning(database: Database, row: AuditBeginningRow): SealedRow {
  return toSealedMac(row.writer, {
    isOf: (vault) => isSealedBeginning(vault, row),
    replace: async (vault) => [resealBeginning(database, row, await sealBeginning(vault, row))],
  });
}

interface SealedMac {
  readonly isOf: (vault: Vault) => Promise<boolean>;
  /** Wrapped in a list, because a drizzle statement is a promise and would run when awaited. */
  readonly replace: (vault: Vault) => Promise<readonly Statement[]>;
}

/** A head that neither key sealed was altered. It gets no new seal, so that it keeps failing. */
function toSealedMac(id: string, { isOf, replace }: SealedMac): SealedRow {
  return {
    id,
    async examine({ before, after }) {
      if (await isOf(after)) return { state: 'current' };
      if (before === null || !(await isOf(before))) return { state: 'damaged' };
      return { state: 'previous', reseal: () => replace(after) };
    },
  };
}

/** How many rows are read at a time and written in one transaction: less than 5 MiB. */
const ROWS_AT_A_TIME = 50;

/** All rows of a kind, page by page. */
export async function* pagesOf(database: Database, kind: SealedKind): AsyncGenerator<readonly SealedRow[]> {
  for (let after = ''; ;) {
    const rows = await kind.page(database, { after, limit: ROWS_AT_A_TIME });
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = last.id;
  }
}
