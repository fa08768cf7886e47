import { resolve } from 'node:path';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { formatVaultReference } from '../../shared/model/vault_path.ts';
import { covers } from '../../shared/net/host_pattern.ts';
import { chooseAccounts, groupByPattern } from '../../shared/resolve/account_choice.ts';
import { toHostBinding } from '../../shared/wire/host_binding.ts';
import { listAllBindings } from '../bindings/find_binding.ts';
import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT, isUnreachable } from '../exit_codes.ts';
import { askYes } from '../terminal/ask.ts';
import { homeOf, prepareHome } from '../up/home.ts';
import { requireOutside } from './hosts/allow_command.ts';
import { realFolder } from './hosts/allowed_hosts.ts';
import {
  changeTrustedFolder,
  findConfirmedSecrets,
  FOLDER_FILE,
  readFolderFile,
  readTrustedFolders,
} from './folder_secrets.ts';

interface TrustOptions {
  readonly remove?: boolean;
  readonly list?: boolean;
  readonly yes?: boolean;
}

/** `svc trust`. */
export function addTrustCommand(line: CommandLine): void {
  const trust = line.program
    .command('trust')
    .description(
      `confirm the ${FOLDER_FILE} of a folder: it names the secrets that sessions there use, for hosts with several`,
    )
    .argument('[folder]', 'default: the working directory')
    .option('--list', 'list the folders that are confirmed on this machine')
    .option('--remove', 'end the effect of a confirmed file')
    .option('-y, --yes', 'confirm without asking');
  handle<TrustOptions>(line, trust, async (call) => {
    const { list = false, remove = false } = call.options;
    const path = resolve(call.context.workingDirectory, call.args[0] ?? '.');
    if (list && (remove || call.args.length > 0)) {
      throw new CliError(EXIT.usage, '--list goes alone: svc trust --list');
    }
    if (list) return listFolders(call);
    if (remove) return removeFolder(call, path);
    const folder = realFolder(path);
    const secrets = await confirmFolder(call, folder, call.options.yes === true);
    call.print.data({ folder, secrets: secrets.map(formatVaultReference) }, () => '');
    return undefined;
  });
}

/**
 * Shows what the file of a folder (a real path) says and asks a person to confirm exactly that; gives its vault paths. What is
 * kept is the hash of what was shown, so a file that changes meanwhile is not confirmed.
 */
export async function confirmFolder(call: Call, folder: string, isSure: boolean): Promise<readonly string[]> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  requireOutside(call, home, 'which may not change what it uses');
  const shown = toPrintable(`${folder}/${FOLDER_FILE}`);
  const file = await readFolderFile(folder);
  if (!file.ok) throw new CliError(EXIT.failed, `${shown} cannot be used: ${file.error}`);
  if (file.value === null) {
    throw new CliError(EXIT.failed, `${shown} does not exist`, [
      'Write one that names your secrets: secrets = ["user/github-work"]',
      'If it was confirmed here, and is gone: svc trust --remove',
    ]);
  }
  const { secrets, sha256 } = file.value;
  if (!secrets.ok) throw new CliError(EXIT.failed, `${shown} cannot be used: ${secrets.error}`);
  const lines = await describeSecrets(call, secrets.value);
  print.note(`Sessions in ${toPrintable(folder)} and below it use these secrets, where a host is bound to several:`);
  for (const text of lines) print.note(`  ${text}`);
  for (const text of changeTexts(findConfirmedSecrets(home, folder), secrets.value)) print.note(`  ${text}`);
  if (!isSure) {
    if (!context.interactive) {
      throw new CliError(EXIT.usage, 'this asks at a terminal: nothing was changed', ['In a script: svc trust --yes']);
    }
    if (!(await askYes(context, 'Confirm?'))) throw new CliError(EXIT.failed, 'nothing was changed');
  }
  prepareHome(home, process.getuid?.());
  await changeTrustedFolder(home, folder, { sha256, secrets: secrets.value });
  print.note(`confirmed, from the next session on; if the file changes, it has to be confirmed again`);
  return secrets.value;
}

function listPaths(paths: readonly string[]): string {
  return paths.map(formatVaultReference).join(', ');
}

/** What is not as it was confirmed last: a person who sees the question often reads this. */
function changeTexts(before: readonly string[] | null, now: readonly string[]): readonly string[] {
  if (before === null) return [];
  const added = now.filter((path) => !before.includes(path));
  const removed = before.filter((path) => !now.includes(path));
  return [
    ...(added.length === 0 ? [] : [`new since it was confirmed: ${listPaths(added)}`]),
    ...(removed.length === 0 ? [] : [`no longer in it: ${listPaths(removed)}`]),
    ...(added.length + removed.length > 0 || before.join() === now.join() ? [] : ['the order has changed']),
  ];
}

/** Each secret with the hosts where it is chosen. Refuses one that no binding sends, as a session would. */
async function describeSecrets(call: Call, secrets: readonly string[]): Promise<readonly string[]> {
  const all = await bindingsIfReachable(call);
  if (all === null) {
    call.print.warn('the control plane is away: it is not known for which hosts these are, and whether they are bound');
    return secrets.map(formatVaultReference);
  }
  const choice = chooseAccounts(
    secrets.map((path) => ({ path, by: 'folder', from: null })),
    all,
  );
  if (!choice.ok) {
    throw new CliError(EXIT.failed, `the file cannot be used: ${choice.error}`, ['`svc binding list` shows them.']);
  }
  const groups = [...groupByPattern(all)];
  return secrets.map((path) => {
    const uses = groups.filter(([, bindings]) => bindings.some(({ credential }) => credential.path === path));
    const hosts = uses.map(([host]) => host);
    const others = (choice.value?.exceptions ?? []).filter((each) => hosts.some((host) => covers(host, each)));
    const but = others.length === 0 ? '' : `, but not for ${others.join(', ')}, which is bound to other secrets only`;
    return `${formatVaultReference(path)} for ${hosts.join(', ')}${but}`;
  });
}

async function bindingsIfReachable(call: Call): Promise<readonly ReturnType<typeof toHostBinding>[] | null> {
  try {
    return (await listAllBindings(controlClient(call.context, call.options))).map(toHostBinding);
  } catch (error) {
    if (isUnreachable(error)) return null;
    throw error;
  }
}

async function listFolders(call: Call): Promise<undefined> {
  const trusted = readTrustedFolders(homeOf(call.context, call.options));
  const items = await Promise.all(
    Object.entries(trusted).map(async ([folder, { sha256 }]) => {
      const file = await readFolderFile(folder);
      const isSame = file.ok && file.value?.sha256 === sha256;
      const paths = isSame && file.value?.secrets.ok ? file.value.secrets.value : [];
      return { folder, state: isSame ? 'confirmed' : 'changed', secrets: paths.map(formatVaultReference) };
    }),
  );
  call.print.rows(
    { items },
    items,
    [
      { title: 'FOLDER', cell: (row) => row.folder },
      { title: 'STATE', cell: (row) => row.state },
      { title: 'SECRETS', cell: (row) => row.secrets.join(', ') },
    ],
    `No ${FOLDER_FILE} is confirmed on this machine: svc trust`,
  );
}

/** Also of a folder that no longer exists. */
async function removeFolder(call: Call, path: string): Promise<undefined> {
  const home = homeOf(call.context, call.options);
  requireOutside(call, home, 'which may not change what it uses');
  const trusted = readTrustedFolders(home);
  const folder = Object.hasOwn(trusted, path) ? path : realFolder(path);
  if (!Object.hasOwn(trusted, folder)) {
    throw new CliError(EXIT.failed, `${toPrintable(folder)}/${FOLDER_FILE} is not confirmed`, [
      '`svc trust --list` shows the confirmed ones.',
    ]);
  }
  await changeTrustedFolder(home, folder, null);
  call.print.data({ folder, removed: true }, () => '');
  call.print.note(`${toPrintable(folder)}/${FOLDER_FILE} has no effect any more, from the next session on`);
}
