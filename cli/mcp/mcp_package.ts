import { join } from 'node:path';
import { type InstalledPackage, type PackagePlan, PackageStore } from '../../gateway/packages/package_store.ts';
import { downloadBytes, type FetchHead } from '../../gateway/packages/download_size.ts';
import { scriptsCommand } from '../../shared/mcp/npm_command.ts';
import { type InstallSpec, packageText, readPackageCommand } from '../../shared/mcp/package_command.ts';
import type { McpServer } from '../../shared/model/mcp_server.ts';
import { counted } from '../../shared/model/sentence.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askYes } from '../terminal/ask.ts';
import { homeOf } from '../up/home.ts';

/** The package that a server's command runs, and what an install would bring. */
export interface PackageOffer {
  readonly spec: InstallSpec;
  readonly store: PackageStore;
  /** Null if it is there already, or could not be looked up. */
  readonly plan: PackagePlan | null;
  /** The packages whose install scripts would run, as `name@version`. */
  readonly scripts: readonly string[];
  /** It is there, and is installed again with further scripts. */
  readonly replaces: boolean;
  /** For a person, before they consent. */
  readonly text: string;
}

const PROGRESS_MS = 10_000;

/** Removes the packages that no server of this machine uses any more. */
export async function removeUnusedPackages(call: Call, servers: readonly McpServer[]): Promise<void> {
  const specs = servers.flatMap(({ command }) => readPackageCommand(command)?.spec ?? []);
  await storeOf(call).keepOnly(specs);
}

/** What to say about a newer release of a server's package that did not start here; null if there is none. */
export function failedReleaseText(call: Call, server: McpServer): string | null {
  const command = server.mode === 'local' ? readPackageCommand(server.command) : null;
  const failed = command === null ? null : storeOf(call).findFailed(command.spec);
  if (command === null || failed === null) return null;
  const { release, used, why } = failed;
  return `${server.name} uses ${command.spec.name}@${used}, because ${release} did not start: ${why}`;
}

function storeOf({ context, options }: Call): PackageStore {
  const { env, npm, pip } = context;
  const mcpHome = join(homeOf(context, options), 'mcp');
  return new PackageStore({
    mcpHome,
    env,
    pid: process.pid,
    ...(npm !== undefined && { npm }),
    ...(pip !== undefined && { pip }),
  });
}

/**
 * Looks up what a server's package brings; null if this machine installs none for it: a container with an open network (`hosts`
 * is null) fetches its own. Nothing is installed. `wantedScripts`: the packages whose install scripts the person named.
 */
export async function offerPackage(
  call: Call,
  server: McpServer,
  hosts: readonly string[] | null | undefined,
  wantedScripts: readonly string[] = [],
): Promise<PackageOffer | null> {
  const { context } = call;
  const command = server.mode === 'local' && hosts !== null ? readPackageCommand(server.command) : null;
  if (command === null) {
    if (wantedScripts.length > 0) throw new CliError(EXIT.failed, `${server.name} runs no package that svc installs`);
    return null;
  }
  const { spec } = command;
  const store = storeOf(call);
  const there = store.find(spec);
  const nothing = { spec, store, plan: null, scripts: [], replaces: false };
  const isThere = there !== null && wantedScripts.every((name) => there.ranScripts.some((ran) => isOf(ran, name)));
  if (isThere) return { ...nothing, text: `nothing: ${installedText(spec, there)} is there` };
  const plan = await store.plan(spec, context.stop);
  if (!plan.ok && wantedScripts.length > 0) throw new CliError(EXIT.failed, toPrintable(plan.error));
  if (!plan.ok) return { ...nothing, text: `could not be looked up: ${plan.error}` };
  const chosen = chooseScripts(server.name, plan.value.withScripts, wantedScripts);
  const scripts = [...new Set([...(there?.ranScripts ?? []), ...chosen])];
  const text = await planText(spec, plan.value, scripts, context.fetch);
  return { spec, store, plan: plan.value, scripts, replaces: there !== null, text };
}

/**
 * Installs a server's package, so that a client that starts the server does not wait for it. A failed install is only
 * reported: a gateway tries again when a client uses the server.
 */
export async function installOffered(
  { context, print }: Call,
  name: string,
  offer: PackageOffer | null,
): Promise<void> {
  if (offer === null) return;
  const { spec, store, plan, scripts, replaces } = offer;
  if (store.find(spec) !== null && !replaces) return;
  const startedAt = context.now();
  const seconds = (): number => Math.round((context.now() - startedAt) / 1_000);
  const timer = setInterval(() => print.note(`still installing after ${seconds()} s; Ctrl-C stops it`), PROGRESS_MS);
  const tell = (text: string): void => print.note(toPrintable(text));
  const installed = await store
    .install(spec, { signal: context.stop, tell, scripts, replaces, ...(plan !== null && { plan }) })
    .finally(() => clearInterval(timer));
  if (context.stop.aborted) throw new CliError(EXIT.failed, 'stopped: nothing was installed, and no consent was given');
  if (installed.ok) {
    print.note(`installed ${installedText(spec, installed.value)}`);
    noteScripts({ print }, name, installed.value);
    return;
  }
  // Without the scripts that the person wants, it would be another package.
  if (scripts.length > 0) throw new CliError(EXIT.failed, toPrintable(`nothing was changed: ${installed.error}`));
  print.warn(toPrintable(`not installed: ${installed.error}`));
  print.note('It is tried again when a client uses the server.');
}

/** `svc mcp update SERVER --newest`: replaces the installed release of a package that the command names without a version. */
export async function updatePackage(call: Call<{ readonly yes?: boolean }>, server: McpServer): Promise<undefined> {
  const { context, options, print } = call;
  const { name } = server;
  const command = server.mode === 'local' ? readPackageCommand(server.command) : null;
  if (command === null) throw new CliError(EXIT.failed, `${name} runs no package that svc installs`);
  const { spec } = command;
  if (spec.isExact) {
    const start = spec.kind === 'npm' ? 'npx -y ' : 'uvx ';
    const fix = `To run another release: svc mcp update ${name} -- ${start}${spec.name}@VERSION`;
    throw new CliError(EXIT.failed, `the command of ${name} names one release, ${packageText(spec)}`, [fix]);
  }
  const store = storeOf(call);
  const there = store.find(spec);
  const plan = await store.planNewest(spec, context.stop);
  if (!plan.ok) throw new CliError(EXIT.failed, toPrintable(plan.error));
  if (there?.release === plan.value.release) {
    print.note(toPrintable(`${name} has the newest release: ${installedText(spec, there)}`));
    return undefined;
  }
  const from = there === null ? 'not installed' : there.release;
  print.note(toPrintable(`${from} -> ${await planText(spec, plan.value, [], context.fetch)}`));
  if (options.yes !== true && !context.interactive) {
    throw new CliError(EXIT.usage, 'stdin is not a terminal, so the new release cannot be confirmed', ['Add --yes.']);
  }
  if (options.yes !== true && !(await askYes(context, `Run this release of ${spec.name} on this machine?`))) {
    throw new CliError(EXIT.failed, 'not updated');
  }
  const tell = (text: string): void => print.note(toPrintable(text));
  const done = await store.install(spec, { signal: context.stop, tell, plan: plan.value, replaces: true });
  if (!done.ok) throw new CliError(EXIT.failed, toPrintable(`not updated: ${done.error}`));
  print.note(toPrintable(`installed ${installedText(spec, done.value)}`));
  noteScripts({ print }, name, done.value);
  print.note(`A running ${name} keeps the earlier release until it is started again.`);
  const { previousRelease, release } = done.value;
  if (previousRelease !== null)
    print.note(toPrintable(`If ${release} does not start, ${previousRelease} is used again.`));
  return undefined;
}

/** True if `name@version` is the package that a person named. */
function isOf(script: string, wanted: string): boolean {
  return script === wanted || script.slice(0, script.lastIndexOf('@')) === wanted;
}

/** The packages that a person named, as `name@version`, among those that have install scripts. */
function chooseScripts(server: string, withScripts: readonly string[], wanted: readonly string[]): readonly string[] {
  const unknown = wanted.find((name) => !withScripts.some((script) => isOf(script, name)));
  if (unknown === undefined) return withScripts.filter((script) => wanted.some((name) => isOf(script, name)));
  const others = withScripts.length === 0 ? 'No package of it has any.' : `These have: ${withScripts.join(', ')}`;
  const message = `the package of ${server} has no install scripts of ${JSON.stringify(unknown)}`;
  throw new CliError(EXIT.failed, toPrintable(message), [toPrintable(others)]);
}

function noteScripts({ print }: Pick<Call, 'print'>, server: string, installed: InstalledPackage): void {
  const { withScripts, ranScripts } = installed;
  if (ranScripts.length > 0) print.note(toPrintable(`install scripts were run: ${ranScripts.join(', ')}`));
  const missed = withScripts.filter((each) => !ranScripts.includes(each));
  if (missed.length === 0) return;
  print.note(toPrintable(`install scripts were not run: ${missed.join(', ')}`));
  print.note(toPrintable(`If ${server} needs them: ${scriptsCommand(server, missed)}`));
}

async function planText(
  spec: InstallSpec,
  plan: PackagePlan,
  scripts: readonly string[],
  fetchHead: FetchHead,
): Promise<string> {
  const bytes = await downloadBytes(plan.tarballs, fetchHead);
  const size = bytes === null ? 'of unknown size' : `${bytesText(bytes)} to download`;
  const left = plan.withScripts.filter((each) => !scripts.includes(each));
  const run =
    scripts.length === 0 ? '' : `; runs install scripts as you, with your files and network: ${scripts.join(', ')}`;
  const others = left.length === 0 ? '' : `; their install scripts are not run: ${left.join(', ')}`;
  return `${nameText(spec, plan.release)}, ${counted(plan.tarballs.length, 'package')}, ${size}${run}${others}`;
}

function installedText(spec: InstallSpec, { release, packages, bytes }: InstalledPackage): string {
  return `${nameText(spec, release)} (${counted(packages, 'package')}, ${bytesText(bytes)} on disk)`;
}

/** Without a version in the command, the release that was the newest at the install is used until it is installed again. */
function nameText(spec: InstallSpec, release: string): string {
  return spec.isExact ? packageText(spec) : `${spec.name}@${release}`;
}

function bytesText(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1_000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
