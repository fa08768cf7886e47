import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { askControl, askSidecar } from '../up/status_command.ts';
import { changesSince, compareVersions, readChangelog, type VersionChanges } from './changelog.ts';
import { type Installation, readInstallation } from './installation.ts';
import { readSignedRelease, type SignedRelease } from './signed_release.ts';
import { CHECKOUT_STEPS, RESTART, upgradeSteps } from './upgrade_steps.ts';

interface UpgradeOptions {
  readonly from?: string;
}

/** What `svc upgrade` found. */
interface Report {
  readonly version: string;
  readonly installed_by: Installation['way'];
  readonly root: string;
  /** The versions that answer; null for a program that does not run. */
  readonly running: { readonly control: string | null; readonly sidecar: string | null };
  /** The newest version of the release; null without `--from`. */
  readonly newest: string | null;
  /** What is new in it, or without `--from` what was new in the installed version. */
  readonly changes: readonly VersionChanges[];
  /** The commands for a person to run. */
  readonly steps: readonly string[];
}

/** `svc upgrade`. */
export function addUpgradeCommand(line: CommandLine): void {
  const upgrade = line.program
    .command('upgrade')
    .description('say what is new and how to install it; it changes nothing, and reads only what --from names')
    .option('--from <release>', 'address or folder of a signed release, such as the one that svc was installed from');
  handle<UpgradeOptions>(line, upgrade, showUpgrade);
}

async function showUpgrade(call: Call<UpgradeOptions>): Promise<undefined> {
  const { context, options, print } = call;
  const installation = readInstallation(context.root);
  const release = options.from === undefined ? null : await readRelease(call, installation, options.from);
  const [control, sidecar] = await Promise.all([askControl(call), askSidecar(call)]);
  const running = {
    control: control.ok ? control.value.version : null,
    sidecar: sidecar.ok ? sidecar.value.version : null,
  };
  const report: Report = {
    version: context.version,
    installed_by: installation.way,
    root: installation.root,
    running,
    ...(release === null ? withoutRelease(call, installation, running) : ofRelease(call, installation, release)),
  };
  print.data(report, () => formatReport(report));
  return undefined;
}

async function readRelease(call: Call, { way, signer }: Installation, from: string): Promise<SignedRelease> {
  if (way === 'checkout') {
    throw new CliError(EXIT.usage, 'this svc is a checkout, which --from cannot update', ['Use: git pull']);
  }
  if (signer === null) {
    throw new CliError(EXIT.failed, 'this svc was built without a key, so it cannot check the signature of a release', [
      'Check it yourself and install it: docs/install.md, "Signature and contents".',
    ]);
  }
  return await readSignedRelease(call.context, from, signer);
}

type Found = Pick<Report, 'newest' | 'changes' | 'steps'>;

function withoutRelease({ context }: Call, { way, root }: Installation, running: Report['running']): Found {
  const changes = readChangelog(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'));
  const isBehind = Object.values(running).some((version) => version !== null && version !== context.version);
  const steps = way === 'checkout' ? CHECKOUT_STEPS : isBehind ? [RESTART] : [];
  return { newest: null, changes: changes.filter((each) => each.version === context.version), steps };
}

function ofRelease({ context }: Call, installation: Installation, release: SignedRelease): Found {
  const changes = readChangelog(release.changelog);
  const [newest] = changes.map((each) => each.version).toSorted((a, b) => compareVersions(b, a));
  if (newest === undefined) throw new CliError(EXIT.failed, `CHANGELOG.md in ${release.from} names no version`);
  const isNewer = compareVersions(newest, context.version) > 0;
  const checksumProgram = process.platform === 'darwin' ? 'shasum -a 256' : 'sha256sum';
  const steps = isNewer ? upgradeSteps(installation, { version: newest, release, checksumProgram }) : [];
  return { newest, changes: changesSince(changes, context.version), steps };
}

const WAY_TEXT: Readonly<Record<Installation['way'], string>> = {
  checkout: 'a checkout',
  npm: 'the npm package',
  homebrew: 'Homebrew',
  archive: 'the install script',
  debian: 'the Debian package',
  image: 'an image',
};

function formatReport({ version, installed_by: way, root, running, newest, changes, steps }: Report): string {
  const lines = [`svc ${version}, from ${WAY_TEXT[way]}, in ${root}`];
  for (const [name, found] of [['control plane', running.control] as const, ['sidecar', running.sidecar] as const]) {
    if (found !== null && found !== version) lines.push(`the ${name} that runs has version ${found}`);
  }
  const isNewer = newest !== null && compareVersions(newest, version) > 0;
  if (newest !== null && !isNewer) {
    const order = compareVersions(newest, version) === 0 ? 'the same version' : `${newest}, which is older`;
    lines.push(`the release is ${order}: there is nothing to install`);
  }
  for (const each of changes)
    lines.push('', `${newest === null ? 'in' : 'new in'} ${each.version}:`, ...each.text.split('\n'));
  if (steps.length > 0)
    lines.push(
      '',
      isNewer || way === 'checkout' ? 'to upgrade:' : 'to run this version:',
      ...steps.map((step) => `  ${step}`),
    );
  if (newest === null && way !== 'checkout')
    lines.push('', 'to see what is newer: svc upgrade --from ADDRESS-OR-FOLDER-OF-A-RELEASE');
  if (isNewer && way !== 'image') {
    lines.push(
      '',
      'The database is changed at the next start. An older svc refuses it then: to go back, restore the backup.',
    );
  }
  return `${lines.map(toPrintable).join('\n')}\n`;
}
