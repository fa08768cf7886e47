import { err, ok, type Result } from '../../shared/model/result.ts';
import { toShownLine } from '../../shared/model/shown_text.ts';
import { npmEnvironment } from '../../machine/npm_environment.ts';
import { runInstaller } from './run_installer.ts';

/** Runs npm in a folder. The error is the rest of a sentence, with the reason that npm gives. */
export type Npm = (args: readonly string[], folder: string, signal: AbortSignal) => Promise<Result<void, string>>;

/**
 * What every run of npm is told, also against a person's settings. No script runs and no repository is fetched: older
 * versions of npm run a program that a repository's settings name, so git is named as a program that does not exist.
 */
const FIXED = [
  '--ignore-scripts',
  '--allow-git=none',
  '--git=/nonexistent/git',
  '--allow-file=none',
  '--allow-directory=none',
  '--omit=dev',
  '--install-strategy=hoisted',
  '--install-links=true',
  '--package-lock=true',
  '--omit-lockfile-registry-resolved=false',
  '--bin-links=true',
  '--global=false',
  '--dry-run=false',
  '--audit=false',
  '--fund=false',
  '--update-notifier=false',
  '--loglevel=error',
  '--logs-max=0',
] as const;

/** While npm decides the dependencies, it fetches none by a URL. Later the checked lock file says what it fetches. */
const FOR_PLANS = ['--allow-remote=none'] as const;

/** `npm rebuild NAME@VERSION...`: the only run of npm that starts scripts, of the packages that it names. */
const FOR_SCRIPTS = ['--ignore-scripts=false'] as const;

/** What only a registry is told. A script gets none of it. */
const FOR_REGISTRIES = /^(?:NPM_TOKEN|NODE_AUTH_TOKEN|npm_config_.*)$/i;

const MAX_LINES = 3;
const MAX_CHARACTERS = 500;

/** The npm on the PATH, with the person's settings for their registry. */
export function npmOnPath(env: Readonly<Record<string, string | undefined>>): Npm {
  return async (args, folder, signal) => {
    if (env['PATH'] === undefined) return err(NO_NPM);
    const done = await runInstaller('npm', [...args, ...FIXED, ...optionsFor(args[0])], {
      folder,
      env: environmentFor(args[0], env),
      signal,
    });
    if (done.ok) return ok(undefined);
    const { reason } = done.error;
    if (reason === 'missing') return err(NO_NPM);
    return err(reason === 'failed' ? reasonOf(done.error.output, done.error.message) : done.error.message);
  };
}

function optionsFor(command: string | undefined): readonly string[] {
  if (command === 'rebuild') return FOR_SCRIPTS;
  return command === 'install' ? FOR_PLANS : [];
}

function environmentFor(
  command: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const given = Object.entries(npmEnvironment(env));
  return Object.fromEntries(command === 'rebuild' ? given.filter(([name]) => !FOR_REGISTRIES.test(name)) : given);
}

const NO_NPM = 'npm is not on the PATH; install Node.js with npm';

/** The first lines that npm prints about the error; the path of its log helps nobody. */
function reasonOf(output: string, otherwise: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.replace(/^npm (?:error|ERR!)\s*/, '').trim())
    .filter((line) => line !== '' && !/^npm warn|A complete log of this run|^Log files were not written/.test(line));
  const said = lines.slice(0, MAX_LINES).join('; ');
  return toShownLine(said === '' ? otherwise : said, MAX_CHARACTERS);
}
