import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { PythonVersion } from '../../shared/mcp/python_lock.ts';
import { parseJson } from '../../shared/model/json.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { toShownLine } from '../../shared/model/shown_text.ts';
import { pythonEnvironment } from '../../machine/python_environment.ts';
import { runInstaller } from './run_installer.ts';

/** The machine's Python with its pip. Errors are the rest of a sentence. */
export interface Pip {
  /** The Python that packages are installed for. */
  describe(folder: string, signal: AbortSignal): Promise<Result<PythonVersion, string>>;
  /** Runs pip in a folder. */
  run(args: readonly string[], folder: string, signal: AbortSignal): Promise<Result<void, string>>;
}

/** Of pip's that print a report of what they would install. */
const LEAST_PIP = [22, 2] as const;

const DESCRIBE = `
import json, os, sys, sysconfig
try:
    from pip import __version__ as pip
except ImportError:
    pip = ""
print(json.dumps({
    "executable": os.path.realpath(sys.executable),
    "version": "%d.%d" % sys.version_info[:2],
    "platform": sysconfig.get_platform(),
    "prefix": os.path.realpath(sys.base_prefix),
    "pip": pip,
}))
`;

/**
 * pip, which may start no program. It would start one to build a source archive, for which a dependency by URL is enough,
 * whatever \`--only-binary\` says, and git for a repository. A hook of Python's auditing cannot be removed again. The C library
 * of musl tells its version only as a program.
 */
const PIP = `
import runpy, sys
def refuse(event, args):
    if event == "subprocess.Popen" and str(args[0]).startswith("/lib/ld-musl-"):
        return
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"):
        raise PermissionError("svc lets pip start no program, such as the build of a source archive")
sys.addaudithook(refuse)
sys.argv[0] = "pip"
runpy.run_module("pip", run_name="__main__", alter_sys=True)
`;

/** What every run of pip is told, also against a person's settings: only wheels, and none into the person's own folders. */
const FIXED = ['--only-binary=:all:', '--no-input', '--no-user', '--disable-pip-version-check', '--no-color'] as const;

const pythonAnswer = z.strictObject({
  executable: z.string(),
  version: z.string(),
  platform: z.string(),
  prefix: z.string(),
  pip: z.string(),
});

const MAX_LINES = 4;
const MAX_CHARACTERS = 700;

/** The python3 on the PATH, with the person's settings for their index. */
export function pipOnPath(env: Readonly<Record<string, string | undefined>>): Pip {
  const runPython = (args: readonly string[], folder: string, signal: AbortSignal, more: object = {}) =>
    runInstaller('python3', args, { folder, env: { ...pythonEnvironment(env), ...more }, signal });
  return {
    async describe(folder, signal) {
      if (env['PATH'] === undefined) return err(NO_PYTHON);
      const done = await runPython(['-c', DESCRIBE], folder, signal);
      if (!done.ok) return err(done.error.reason === 'missing' ? NO_PYTHON : textOf(done.error));
      const line = done.value.trim().split('\n').at(-1) ?? '';
      const read = pythonAnswer.safeParse(parseJson(line));
      if (!read.success) return err('python3 did not say which version it is');
      const { pip, ...python } = read.data;
      if (pip === '') return err(`the Python ${python.version} of this machine has no pip; ${INSTALL_PIP}`);
      if (!isAtLeast(pip)) {
        return err(
          `pip is ${pip}, and ${LEAST_PIP.join('.')} or later is needed: python3 -m pip install --upgrade pip`,
        );
      }
      return ok(python);
    },
    async run(args, folder, signal) {
      const [command = '', ...rest] = args;
      // What pip unpacks on its way is in the folder, so that a killed install leaves nothing elsewhere.
      const temporary = join(folder, 'tmp');
      mkdirSync(temporary, { mode: 0o700 });
      const done = await runPython(['-c', PIP, command, ...FIXED, ...rest], folder, signal, { TMPDIR: temporary });
      await rm(temporary, { recursive: true, force: true });
      if (done.ok) return ok(undefined);
      return err(done.error.reason === 'missing' ? NO_PYTHON : textOf(done.error));
    },
  };
}

const INSTALL_PIP = 'install it (on Debian and Ubuntu: apt install python3-pip; elsewhere: python3 -m ensurepip)';
const NO_PYTHON = `python3 is not on the PATH; install Python 3.10 or later with pip`;

function isAtLeast(pip: string): boolean {
  const [major = 0, minor = 0] = pip.split('.').map(Number);
  return major > LEAST_PIP[0] || (major === LEAST_PIP[0] && minor >= LEAST_PIP[1]);
}

/** The first lines that pip prints about the error, and what a person can do about the usual ones. */
function textOf({ reason, message, output }: { reason: string; message: string; output: string }): string {
  if (reason !== 'failed') return message;
  const lines = output
    .split('\n')
    .filter((line) => /^\s*ERROR:|Error\b/.test(line) && !/^\s*(?:Traceback|File )/.test(line))
    .map((line) => line.replace(/^\s*ERROR:\s*/, '').trim());
  const said = [...new Set(lines)].slice(0, MAX_LINES).join('; ');
  const fix = FIXES.find(([pattern]) => pattern.test(output))?.[1] ?? '';
  return `${toShownLine(said === '' ? message : said, MAX_CHARACTERS)}${fix}`;
}

const FIXES: readonly (readonly [RegExp, string])[] = [
  [
    /Requires-Python|requires a different Python/i,
    '. It needs another Python than this python3: put that one first on the PATH, or let uv fetch it at each start with "uvx --python VERSION"',
  ],
  [
    /No matching distribution found|lets pip start no program/,
    '. svc installs wheels and builds nothing: if a package has only a source archive, build its wheel yourself ' +
      '(python3 -m pip wheel --no-deps --wheel-dir DIR NAME), and name the folder in PIP_FIND_LINKS',
  ],
];
