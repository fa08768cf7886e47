import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseSettings, type Settings } from '../../shared/model/settings.ts';
import { databaseInHome } from './node_home.ts';
import { EXIT_USAGE, ProgramError } from './program_error.ts';

/** The settings of a program on Node, from its environment; refused if one is invalid. */
export function readSettings(): Settings {
  const settings = parseSettings(process.env);
  if (settings.ok) return settings.value;
  throw new ProgramError('invalid_setting', settings.error.map(({ message }) => message).join('; '), EXIT_USAGE);
}

/** Refuses if a command would create a database in the home rather than use one. `fix` says what to do. */
export function requireDatabase(settings: Settings, home: string, fix = 'set SVC_DATABASE_URL, or give --home'): void {
  const file = databaseInHome(settings, home);
  if (file === null || existsSync(file)) return;
  throw new ProgramError('database_missing', `there is no database in ${dirname(file)}: ${fix}`);
}
