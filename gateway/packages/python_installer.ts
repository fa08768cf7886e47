import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { normalPythonName, pythonRequirement, type PythonSpec } from '../../shared/mcp/python_command.ts';
import { lockOfReport, type PythonVersion, readPythonLock, requirementsOf } from '../../shared/mcp/python_lock.ts';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { PackageInstaller } from './package_installer.ts';
import type { Pip } from './pip_program.ts';

const LOCK = 'svc-python-lock.json';
const LAUNCHER = 'svc_start.py';
const LIBRARY = 'lib';

/** Packages of Python indexes, by a lock of wheels with their hashes (decision 0100). */
export function pythonInstaller(pip: Pip): PackageInstaller<PythonSpec> {
  return {
    lockFile: LOCK,
    async resolve(spec, folder, signal) {
      const python = await pip.describe(folder, signal);
      if (!python.ok) return python;
      const report = join(folder, 'svc-report.json');
      const args = ['install', '--dry-run', '--ignore-installed', '--report', report, pythonRequirement(spec)];
      const done = await pip.run(args, folder, signal);
      return done.ok ? lockOfReport(readFileSync(report, 'utf8'), spec, python.value) : done;
    },
    read(lock, spec) {
      const read = readPythonLock(lock, spec);
      if (!read.ok) return read;
      const { release, packages } = read.value;
      return ok({ release, tarballs: packages.map(({ url }) => url), withScripts: [] });
    },
    async fetch(lock, spec, { folder, signal }) {
      const read = readPythonLock(lock, spec);
      if (!read.ok) return read;
      writeFileSync(join(folder, LOCK), lock);
      const requirements = join(folder, 'svc-requirements.txt');
      writeFileSync(requirements, requirementsOf(read.value));
      const library = join(folder, LIBRARY);
      const args = ['install', '--require-hashes', '--no-deps', '--ignore-installed', '--no-warn-script-location'];
      const done = await pip.run([...args, '--target', library, '--requirement', requirements], folder, signal);
      return done.ok ? writeLauncher(folder, spec) : done;
    },
    async checkRepair(lock, spec, folder, signal) {
      const read = readPythonLock(lock, spec);
      if (!read.ok) return read;
      const python = await pip.describe(folder, signal);
      return python.ok ? compareVersions(read.value.python, python.value) : python;
    },
    findProgram: () => ok(LAUNCHER),
    startOf(folder, program, lock, spec) {
      const read = readPythonLock(lock, spec);
      // A newer Python of the system has other standard modules, and compiled packages do not work with it.
      if (!read.ok || !existsSync(read.value.python.executable)) return null;
      const { executable, prefix } = read.value.python;
      const launcher = join(folder, program);
      return {
        command: [executable, launcher],
        programs: join(folder, LIBRARY, 'bin'),
        inContainer: ['python3', launcher],
        image: pythonImage(read.value.python),
        needs: [executable, join(prefix, 'lib')],
      };
    },
  };
}

/** The image with the same Python: compiled packages work with no other. */
export function pythonImage({ version }: PythonVersion): string {
  return `python:${version}-slim`;
}

/** What was locked for one Python is not installed for another: its hashes are those of other wheels. */
function compareVersions(locked: PythonVersion, found: PythonVersion): Result<void, string> {
  if (locked.executable === found.executable && locked.version === found.version) return ok(undefined);
  const now = `python3 is ${found.executable} (${found.version}) now`;
  return err(
    `was installed for ${locked.executable} (Python ${locked.version}), and ${now}: ` +
      'consent to its server again to install it for this one (svc mcp consent SERVER)',
  );
}

/** A module and a name in it: nothing that Python's source could read in another way. */
const ENTRY_POINT = /^([a-z_]\w*(?:\.[a-z_]\w*)*)\s*:\s*([a-z_]\w*(?:\.[a-z_]\w*)*)\s*(?:\[[\w\s,.-]*\])?$/i;

/**
 * Writes the program that starts the package's one. pip's own has the path of the folder and of this machine's Python in it, and
 * does not find its modules in a container.
 */
function writeLauncher(folder: string, spec: PythonSpec): Result<void, string> {
  const scripts = readScripts(join(folder, LIBRARY), spec.name);
  const wanted = normalPythonName(spec.program);
  const names = [...scripts.keys()];
  const chosen = names.find((name) => normalPythonName(name) === wanted) ?? (names.length === 1 ? names[0] : undefined);
  const entry = chosen === undefined ? undefined : scripts.get(chosen);
  if (chosen === undefined || entry === undefined) {
    if (names.length === 0) return err('has no program');
    const shown = names.filter((name) => /^[\w.-]+$/.test(name)).join(', ');
    return err(
      `has several programs, none of them ${JSON.stringify(spec.program)}: ${shown}. Name one: uvx --from ${spec.name} PROGRAM`,
    );
  }
  const [, module = '', attribute = ''] = ENTRY_POINT.exec(entry) ?? [];
  if (module === '') return err(`has the program ${JSON.stringify(chosen)}, whose start cannot be read`);
  writeFileSync(join(folder, LAUNCHER), launcherText(chosen, module, attribute), { flag: 'wx', mode: 0o600 });
  return ok(undefined);
}

/** Of `entry_points.txt`, which is its publisher's: a list of programs is far shorter. */
const MAX_ENTRY_POINTS_BYTES = 256 * 1024;

/** The programs of a distribution (https://packaging.python.org/en/latest/specifications/entry-points/). */
function readScripts(library: string, name: string): ReadonlyMap<string, string> {
  const info = readdirSync(library).find((each) => {
    const [, distribution = ''] = /^(.+?)-[^-]+\.dist-info$/.exec(each) ?? [];
    return normalPythonName(distribution) === name;
  });
  const path = join(library, info ?? '', 'entry_points.txt');
  const scripts = new Map<string, string>();
  const found = info === undefined ? undefined : lstatSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true || found.size > MAX_ENTRY_POINTS_BYTES) return scripts;
  let section = '';
  for (const line of readFileSync(path, 'utf8').split(/\r?\n/)) {
    const text = line.trim();
    const [key = '', value = ''] = splitAtEquals(text);
    if (text.startsWith('[') && text.endsWith(']')) section = text.slice(1, -1);
    else if (section === 'console_scripts' && !/^(?:$|[#;[])/.test(key) && value !== '') scripts.set(key, value);
  }
  return scripts;
}

/** Without an expression: one with spaces on both sides of the sign takes the square of a hostile line's length. */
function splitAtEquals(text: string): readonly string[] {
  const at = text.indexOf('=');
  return at === -1 ? [] : [text.slice(0, at).trimEnd(), text.slice(at + 1).trimStart()];
}

/** The packages of the folder come first, and no others of the machine are seen, as in a virtual environment. */
function launcherText(name: string, module: string, attribute: string): string {
  return `import importlib, os, site, sys
library = os.path.join(os.path.dirname(os.path.abspath(__file__)), ${JSON.stringify(LIBRARY)})
others = [path for path in sys.path[1:] if not path.endswith(("site-packages", "dist-packages"))]
sys.path[:] = [library] + [path for path in others if path != library]
site.addsitedir(library)
before = os.environ.get("PYTHONPATH")
os.environ["PYTHONPATH"] = library if not before else library + os.pathsep + before
sys.argv[0] = os.path.join(library, "bin", ${JSON.stringify(name)})
main = importlib.import_module(${JSON.stringify(module)})
for part in ${JSON.stringify(attribute)}.split("."):
    main = getattr(main, part)
sys.exit(main())
`;
}
