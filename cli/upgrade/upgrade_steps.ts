import { CliError, EXIT } from '../exit_codes.ts';
import type { Installation } from './installation.ts';
import type { SignedRelease } from './signed_release.ts';

/** The file of a version that this kind of installation takes. */
const FILE_OF = {
  archive: () => 'install.sh',
  npm: (version: string) => `svc-${version}.tgz`,
  debian: (version: string) => `svc_${version}_amd64.deb`,
  image: (version: string) => `svc-${version}-image.tar.gz`,
} as const;

/** After the programs are replaced. Sessions go on, because the ports stay the same. */
export const RESTART = 'svc down --keep-sessions && svc up --detach';
const BACKUP = 'svc db backup FILE';

/**
 * The commands by which a person installs a version, with the checksums that were signed, so that what they fetch later is what was
 * looked at now. svc runs none of them.
 */
export function upgradeSteps(
  { way, prefix }: Installation,
  { version, release, checksumProgram }: { version: string; release: SignedRelease; checksumProgram: string },
): readonly string[] {
  if (way === 'homebrew') return [BACKUP, 'brew upgrade svc', RESTART];
  if (way === 'checkout') throw new Error('a checkout has no releases');
  const file = FILE_OF[way](version);
  const sum = release.checksums.get(file);
  if (sum === undefined) {
    const message = `the release ${version} in ${release.from} has no ${file}, and this svc was installed by such a file`;
    throw new CliError(EXIT.failed, message, ['docs/install.md lists the other ways to install it.']);
  }
  const from = shellWord(release.from);
  const get = release.isFolder ? `cd ${from}` : `curl -fsSLO ${shellWord(`${release.from}/${file}`)}`;
  const check = `echo '${sum}  ${file}' | ${checksumProgram} --check`;
  const place = prefix === null ? '' : ` --prefix ${shellWord(prefix)}`;
  const install = {
    archive: `sh install.sh --from ${release.isFolder ? '.' : from}${place}`,
    npm: `npm install --global --ignore-scripts${place} ./${file}`,
    debian: `sudo dpkg --install ${file}`,
    image: `docker build --target control --tag svc-control - < ${file}`,
  }[way];
  const installed = `${get} && ${check} && ${install}`;
  return way === 'image' ? [installed, 'docker compose up --detach'] : [BACKUP, installed, RESTART];
}

/** A checkout knows its own origin. */
export const CHECKOUT_STEPS: readonly string[] = [
  "git fetch && git log --oneline 'HEAD..@{upstream}'",
  BACKUP,
  'git pull',
  'svc down --keep-sessions && npm start -- --detach',
];

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
