// The program of `svc vault`: `node worker/entries/vault.ts rotate|status --home DIR`. It prints one line of JSON.
import { parseArgs } from 'node:util';
import { type KeyProtection, passphraseProblem } from '../../shared/model/key_protection.ts';
import { parseKmsKey } from '../../shared/model/kms_key.ts';
import { Secret } from '../../shared/model/secret.ts';
import type { Settings } from '../../shared/model/settings.ts';
import { type KeyPair, rotateMasterKey, type RotationReport, wrongKey } from '../installation/master_key_rotation.ts';
import { type VaultStatus, vaultStatus } from '../installation/vault_status.ts';
import { closeFile, type Database, openDatabase } from '../store/database.ts';
import { migrate } from '../store/migrate.ts';
import { nodeKms } from './kms/node_kms.ts';
import { readSettings, requireDatabase } from './node_command.ts';
import { openClients } from './node_database.ts';
import { homeDirectory } from './node_home.ts';
import { EXIT_USAGE, log, ProgramError, refuse } from './program_error.ts';
import { newKeyringKey, type Protection } from './protected_key.ts';
import {
  beginKeyChange,
  endKeyChange,
  fileKeys,
  keyChange,
  keyProtection,
  masterKeys,
  protectKeyFile,
} from './vault_key_files.ts';
import { SYSTEM_CLOCK } from '../kernel/clock.ts';

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: FLAGS });
  const action = ACTIONS.get(positionals[0] ?? '');
  if (action === undefined) throw new ProgramError('invalid_flag', 'use rotate, status or protect-…', EXIT_USAGE);
  const settings = readSettings();
  const home = homeDirectory(values.home, settings);
  requireDatabase(settings, home);
  const { client, replica } = await openClients(settings, home);
  replica?.close();
  const migrated = await migrate(client, new Date().toISOString());
  if (!migrated.ok) throw new ProgramError(migrated.error.reason, migrated.error.message);
  const answer = await action(openDatabase(client), settings, home, values['kms-key']);
  await closeFile(client);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

const FLAGS = { home: { type: 'string' }, 'kms-key': { type: 'string' } } as const;

type Action = (database: Database, settings: Settings, home: string, kmsKey?: string) => Promise<object>;

const ACTIONS: ReadonlyMap<string, Action> = new Map<string, Action>([
  [
    'rotate',
    (database, settings, home) =>
      settings.vaultKey === undefined ? rotateFile(database, settings, home) : rotateSet(database, settings),
  ],
  ['status', showStatus],
  ['protect-none', (database, settings, home) => protectFile(database, settings, home, null)],
  ['protect-keyring', (database, settings, home) => protectFile(database, settings, home, newKeyringKey())],
  [
    'protect-passphrase',
    async (database, settings, home) => protectFile(database, settings, home, await readNewPassphrase()),
  ],
  [
    'protect-kms',
    async (database, settings, home, kmsKey) => protectFile(database, settings, home, kmsProtection(settings, kmsKey)),
  ],
]);

/** The new passphrase is on the input, because other programs can read arguments. */
async function readNewPassphrase(): Promise<Protection> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  const text = Buffer.concat(chunks).toString('utf8');
  const problem = passphraseProblem(text);
  if (problem !== null) throw new ProgramError('invalid_passphrase', `the passphrase ${problem}`, EXIT_USAGE);
  return { by: 'passphrase', passphrase: new Secret(text) };
}

function kmsProtection(settings: Settings, name = ''): Protection {
  const key = parseKmsKey(name);
  if (!key.ok) throw new ProgramError('invalid_flag', `the key of the KMS ${key.error}`, EXIT_USAGE);
  return { by: 'kms', key: key.value, kms: nodeKms(settings) };
}

async function protectFile(
  database: Database,
  settings: Settings,
  home: string,
  next: Protection | null,
): Promise<{ readonly protection: KeyProtection }> {
  if (settings.vaultKey !== undefined) {
    const message = 'SVC_VAULT_KEY is set, so the key is in no file of svc: protect it where you keep it';
    throw new ProgramError('missing_vault_key', message, EXIT_USAGE);
  }
  const { masterKey } = await fileKeys(settings, home);
  const problem = masterKey === null ? null : await wrongKey(database, masterKey);
  if (problem !== null) throw new ProgramError(problem.reason, problem.message);
  await protectKeyFile(settings, home, next);
  return { protection: await keyProtection(home) };
}

async function showStatus(
  database: Database,
  settings: Settings,
  home: string,
): Promise<VaultStatus & { readonly protection: KeyProtection | null }> {
  const status = await vaultStatus(database, await masterKeys(settings, home), createProgress());
  if (!status.ok) throw new ProgramError(status.error.reason, status.error.message);
  const isUnderWay = settings.vaultKey === undefined && (await keyChange(settings, home)) !== null;
  const protection = settings.vaultKey === undefined ? await keyProtection(home) : null;
  return { ...status.value, protection, finished: status.value.finished && !isUnderWay };
}

/** With both keys in the settings, as in the workers. */
async function rotateSet(database: Database, { vaultKey, vaultKeyPrevious }: Settings): Promise<RotationReport> {
  if (vaultKey !== undefined && vaultKeyPrevious !== undefined) {
    return rotate(database, { before: vaultKeyPrevious, after: vaultKey });
  }
  const message =
    'SVC_VAULT_KEY_PREVIOUS is not set: set SVC_VAULT_KEY to the new key and SVC_VAULT_KEY_PREVIOUS to the old one (nothing was changed)';
  throw new ProgramError('missing_vault_key', message, EXIT_USAGE);
}

/** With a new key that replaces the one in `home`. The old one stays until everything is sealed again. */
async function rotateFile(database: Database, settings: Settings, home: string): Promise<RotationReport> {
  const { masterKey } = await fileKeys(settings, home);
  if (masterKey === null) {
    throw new ProgramError(
      'missing_vault_key',
      `there is no vault.key in ${home}: set SVC_VAULT_KEY and SVC_VAULT_KEY_PREVIOUS`,
    );
  }
  if ((await keyChange(settings, home)) === null) {
    const problem = await wrongKey(database, masterKey);
    if (problem !== null) throw new ProgramError(problem.reason, problem.message);
  }
  const change = await beginKeyChange(settings, home, masterKey);
  const report = await rotate(database, change);
  await endKeyChange(settings, home, change);
  return report;
}

async function rotate(database: Database, pair: KeyPair): Promise<RotationReport> {
  const done = await rotateMasterKey(database, pair, { clock: SYSTEM_CLOCK, onProgress: createProgress() });
  if (done.ok) return done.value;
  throw new ProgramError(done.error.reason, done.error.message);
}

const TOLD_EVERY_MS = 1_000;

/** Tells what is done once a second. */
function createProgress(): (progress: string) => void {
  let toldAt = SYSTEM_CLOCK.now();
  return (progress) => {
    if (SYSTEM_CLOCK.now() - toldAt < TOLD_EVERY_MS) return;
    toldAt = SYSTEM_CLOCK.now();
    log({ level: 'info', message: progress });
  };
}

main().catch((error: unknown) => refuse(error, 'the command did not finish: keep both keys, and run it again'));
