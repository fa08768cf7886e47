import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npmSpecText } from '../../shared/mcp/npm_command.ts';
import { readNpmLock } from '../../shared/mcp/npm_lock.ts';
import type { NpmSpec } from '../../shared/mcp/package_command.ts';
import { ok } from '../../shared/model/result.ts';
import type { Npm } from './npm_program.ts';
import { findProgram, removeStrayLinks } from './package_folder.ts';
import type { PackageInstaller } from './package_installer.ts';

const LOCK = 'package-lock.json';
const PLATFORM = { os: process.platform, cpu: process.arch };

/** Packages of npm registries, by npm's own lock file (decision 0071). */
export function npmInstaller(npm: Npm): PackageInstaller<NpmSpec> {
  return {
    lockFile: LOCK,
    /** npm fetches only descriptions. */
    async resolve(spec, folder, signal) {
      writeFileSync(join(folder, 'package.json'), manifestOf(spec));
      const done = await npm(['install', '--package-lock-only'], folder, signal);
      return done.ok ? ok(readFileSync(join(folder, LOCK), 'utf8')) : done;
    },
    read: (lock, spec) => readNpmLock(lock, spec, PLATFORM),
    async fetch(lock, spec, { folder, signal, scripts }) {
      writeFileSync(join(folder, 'package.json'), manifestOf(spec));
      writeFileSync(join(folder, LOCK), lock);
      const fetched = await npm(['ci'], folder, signal);
      if (!fetched.ok || scripts.length === 0) return fetched;
      const done = await npm(['rebuild', ...scripts], folder, signal);
      removeStrayLinks(folder);
      return done;
    },
    checkRepair: () => Promise.resolve(ok(undefined)),
    findProgram: (folder, spec) => findProgram(folder, spec.name),
    startOf(folder, program) {
      const command = [join(folder, program)];
      const programs = join(folder, 'node_modules', '.bin');
      return { command, programs, inContainer: command, image: null, needs: [] };
    },
  };
}

function manifestOf(spec: NpmSpec): string {
  const text = npmSpecText(spec);
  const dependencies = { [spec.name]: text.slice(spec.name.length + 1) };
  return JSON.stringify({ name: 'svc-mcp-package', version: '0.0.0', private: true, dependencies });
}
