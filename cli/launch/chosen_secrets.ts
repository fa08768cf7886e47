import { toPrintable } from '../../shared/model/shown_text.ts';
import type { ChosenSecret } from '../../shared/model/account_choice.ts';
import type { Call } from '../command_line.ts';
import { valueOrUsageError } from '../command_options.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { homeOf } from '../up/home.ts';
import { realFolder } from './hosts/allowed_hosts.ts';
import { findFolderSecrets, FOLDER_FILE, readTrustedFolders } from './folder_secrets.ts';
import { findOuterSession, OUTSIDE } from './outer_session.ts';
import { parseSecretName } from './secret_name.ts';
import type { SessionRecord } from './session_list.ts';

export interface UseOptions {
  readonly use?: readonly string[];
}

/**
 * The secrets that a session uses where a host is bound to several: those of `--use`, of the agent's profile, and of the
 * confirmed `.svc.toml` of the working directory or the nearest folder above it.
 */
export async function chooseSecrets(
  call: Call<UseOptions>,
  profile: { readonly name: string; readonly secrets: readonly string[] } | null = null,
): Promise<readonly ChosenSecret[]> {
  const typed = [...new Set((call.options.use ?? []).map((text) => valueOrUsageError('--use', parseSecretName(text))))];
  const ofFolder = await folderSecrets(call);
  return withinSession(call, [
    ...typed.map((path) => ({ path, by: 'option' as const, from: null })),
    ...(profile?.secrets ?? []).map((path) => ({ path, by: 'profile' as const, from: profile?.name ?? null })),
    ...ofFolder,
  ]);
}

/**
 * A session that is started inside another one has the same choice: so a program does not come to another account by starting a
 * session of its own, with another `--use` or in another folder. This stops programs that do not hide where they come from.
 */
async function withinSession(call: Call, own: readonly ChosenSecret[]): Promise<readonly ChosenSecret[]> {
  const outer = await findOuterSession(call);
  if (outer === null) return own;
  const chosen = outer.used_secrets.map(toChosen);
  // Without a choice, the session around this one can use each account.
  if (chosen.length === 0) return own;
  const isSame = own.length === chosen.length && own.every(({ path }, at) => path === chosen[at]?.path);
  if (own.length === 0 || isSame) return chosen;
  const has = chosen.map(({ path }) => path).join(', ');
  throw new CliError(EXIT.failed, `this runs inside a session that uses ${has}, and may not change that`, [OUTSIDE]);
}

function toChosen({ reference, by, from }: SessionRecord['used_secrets'][number]): ChosenSecret {
  return { path: valueOrUsageError('used_secrets', parseSecretName(reference)), by, from };
}

/** Warns that the file of this folder has no effect on what is started. */
export async function warnOfFolderFile({ context, options, print }: Call, why: string): Promise<void> {
  const { state, unconfirmed } = await findFolderSecrets(
    readTrustedFolders(homeOf(context, options)),
    realFolder(context.workingDirectory),
  );
  const [folder] = state.kind === 'none' ? unconfirmed : [state.folder];
  if (folder !== undefined) print.warn(`${shownFile(folder)} has no effect here: ${why}`);
}

async function folderSecrets(call: Call): Promise<readonly ChosenSecret[]> {
  const { context, options, print } = call;
  const folder = realFolder(context.workingDirectory);
  const { state, unconfirmed } = await findFolderSecrets(readTrustedFolders(homeOf(context, options)), folder);
  for (const each of unconfirmed) {
    print.warn(`${shownFile(each)} has no effect, because nobody confirmed it here: svc trust ${shownArgument(each)}`);
  }
  if (state.kind === 'none') return [];
  if (state.kind === 'trusted') return state.secrets.map((path) => ({ path, by: 'folder', from: state.folder }));
  const problem = `${shownFile(state.folder)} was confirmed here, and now ${state.problem}`;
  if (context.interactive) {
    print.warn(problem);
    // Loaded on use, so that a run starts faster.
    const { confirmFolder } = await import('./trust_command.ts');
    const secrets = await confirmFolder(call, state.folder, false);
    return secrets.map((path) => ({ path, by: 'folder', from: state.folder }));
  }
  throw new CliError(EXIT.failed, `${problem}: nothing was started`, [
    `To use it as it is now: svc trust ${shownArgument(state.folder)}`,
    `To start without it: svc trust --remove ${shownArgument(state.folder)}`,
  ]);
}

/** A folder's name may come with a repository. */
function shownFile(folder: string): string {
  return toPrintable(folder === '/' ? `/${FOLDER_FILE}` : `${folder}/${FOLDER_FILE}`);
}

/** As a word for a shell. */
function shownArgument(folder: string): string {
  return /^[\w./@+-]+$/.test(folder) ? folder : `'${toPrintable(folder.replaceAll("'", "'\\''"))}'`;
}
