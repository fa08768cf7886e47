// The program of `svc vault`: `node worker/entries/vault.ts rotate|status --home DIR`. It prints one line of JSON.
import { parseArgs } from 'node:util';
import type { Settings } from '../../shared/model/settings.ts';
import { type KeyPair, rotateMasterKey, type RotationReport, wrongKey } from '../installation/master_key_rotation.ts';
import { type VaultStatus, vaultStatus } from '../installation/vault_status.ts';
import { closeFile, type Database, openDatabase } from '../store/database.ts';
import { migrate } from '../store/migrate.ts';
import { readSettings, requireDatabase } from './node_command.ts';
import { openClients } from './node_database.ts';
import { homeDirectory } from './node_home.ts';
import { EXIT_USAGE, log, ProgramError, refuse } from './program_error.ts';
import { beginKeyChange, endKeyChange, keyChange, masterKeys } from './vault_key_files.ts';
import { SYSTEM_CLOCK } from '../kernel/clock.ts';

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { home: { type: 'string' } } });
  const action = ACTIONS.get(positionals[0] ?? '');
  if (action === undefined) throw new ProgramError('invalid_flag', 'use rotate or status', EXIT_USAGE);
  const settings = readSettings();
  const home = homeDirectory(values.home, settings);
  requireDatabase(settings, home);
  const { client, replica } = await openClients(settings, home);
  replica?.close();
  const migrated = await migrate(client, new Date().toISOString());
  if (!migrated.ok) throw new ProgramError(migrated.error.reason, migrated.error.message);
  const answer = await action(openDatabase(client), settings, home);
  await closeFile(client);
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

type Action = (database: Database, settings: Settings, home: string) => Promise<object>;

const ACTIONS: ReadonlyMap<string, Action> = new Map<string, Action>([
  [
    'rotate',
    (database, settings, home) =>
      settings.vaultKey === undefined ? rotateFile(database, home) : rotateSet(database, settings),
  ],
  ['status', showStatus],
]);

async function showStatus(database: Database, settings: Settings, home: string): Promise<VaultStatus> {
  const status = await vaultStatus(database, await masterKeys(settings, home), createProgress());
  if (!status.ok) throw new ProgramError(status.error.reason, status.error.message);
  const isUnderWay = settings.vaultKey === undefined && (await keyChange(home)) !== null;
  return { ...status.value, finished: status.value.finished && !isUnderWay };
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
async function rotateFile(database: Database, home: string): Promise<RotationReport> {
  const { masterKey } = await masterKeys({}, home);
  if (masterKey === null) {
    throw new ProgramError(
      'missing_vault_key',
      `there is no vault.key in ${home}: set SVC_VAULT_KEY and SVC_VAULT_KEY_PREVIOUS`,
    );
  }
  if ((await keyChange(home)) === null) {
    const problem = await wrongKey(database, masterKey);
    if (problem !== null) throw new ProgramError(problem.reason, problem.message);
  }
  const change = await beginKeyChange(home, masterKey);
  const report = await rotate(database, change);
  await endKeyChange(home, change);
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
