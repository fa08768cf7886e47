import { existsSync, readFileSync, statSync } from 'node:fs';
import { parseJson } from '../../shared/model/json.ts';
import type { CliContext } from '../context.ts';
import { accountReference } from './account_login.ts';
import { agentPath } from './agent_files.ts';
import type { ReadyLogin } from './agent_login.ts';
import { ACCOUNT } from './agent_names.ts';
import type { AgentAccount, AgentProfile } from './agent_profile.ts';
import { type Json, LOGIN_FORMATS } from './login_formats.ts';

type Place = Pick<CliContext, 'env' | 'userHome'>;

/** A file that an agent writes for its login is far smaller. */
const MOST_READ_BYTES = 1024 * 1024;

/** The person's file with an agent's own login, if its login is one of placeholders; null if not. */
export function readAccountFile(place: Place, account: AgentAccount): Json | null {
  const path = agentPath(place, account.file);
  if (!existsSync(path)) return null;
  const stats = statSync(path);
  if (!stats.isFile() || stats.size > MOST_READ_BYTES) return null;
  const json = parseJson(readFileSync(path, 'utf8'));
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return null;
  return LOGIN_FORMATS[account.file.format].hasPlaceholders({ ...json }) ? { ...json } : null;
}

/** The agent's own login by its file alone: nothing says whether svc still has its tokens. */
export function accountInFile(place: Place, profile: AgentProfile): ReadyLogin | null {
  const { account } = profile;
  const file = account === undefined ? null : readAccountFile(place, account);
  if (account === undefined || file === null) return null;
  const placeholder = LOGIN_FORMATS[account.file.format].access(file);
  if (placeholder === null) return null;
  const bindings = account.hosts.map((host) => ({ host }));
  const login = { name: ACCOUNT, title: account.title, variable: null, also: [], bindings };
  return { login, placeholder, reference: accountReference(profile) };
}
