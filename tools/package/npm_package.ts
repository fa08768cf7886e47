import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OutputChunk } from 'rolldown';
import typescript from 'typescript';
import { z } from 'zod';
import { ROOT, writePackage } from './build_package.ts';
import parts from './native/native_parts.json' with { type: 'json' };
import { writeReleaseFile } from './release_file.ts';
import { settleFiles } from './settle_files.ts';
import { packagesOf, thirdPartyNotices } from './third_party_notices.ts';

const rootManifest = z.object({ name: z.string(), version: z.string(), description: z.string(), license: z.string() });
export type RootManifest = z.output<typeof rootManifest>;

/** What bin/svc can run the bundle with. */
const OLDEST_NODE = '>=22.15';

export function readRootManifest(): RootManifest {
  return rootManifest.parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
}

/**
 * Writes the folder of the npm package: bundled programs, no scripts, and the database's native parts as dependencies, of which npm
 * chooses that of the machine. Their hashes are in the bundle. It stays private: nobody publishes it by accident, under a name that is somebody else's at the public registry.
 */
export function writeNpmPackage(chunks: readonly OutputChunk[], folder: string, signer: string | null): void {
  mkdirSync(folder, { recursive: true });
  writePackage(chunks, folder);
  const manifest = {
    ...readRootManifest(),
    private: true,
    type: 'module',
    bin: { svc: 'bin/svc' },
    exports: { './session': { types: './sdk/session.d.ts', default: './sdk/session.js' } },
    engines: { node: OLDEST_NODE },
    optionalDependencies: Object.fromEntries(Object.entries(parts).map(([name, { version }]) => [name, version])),
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(join(folder, 'sdk/session.d.ts'), sessionTypes());
  const contained = packagesOf(chunks.flatMap(({ moduleIds }) => moduleIds));
  writeFileSync(join(folder, 'THIRD_PARTY_NOTICES.txt'), thirdPartyNotices(contained));
  writeReleaseFile(folder, 'npm', signer);
  settleFiles(folder);
}

/** The types of `svc/session`, without what they are imported for. */
function sessionTypes(): string {
  const fileName = join(ROOT, 'cli/sdk/create_session.ts');
  const { outputText, diagnostics = [] } = typescript.transpileDeclaration(readFileSync(fileName, 'utf8'), {
    fileName,
    reportDiagnostics: true,
    compilerOptions: { target: typescript.ScriptTarget.ESNext, module: typescript.ModuleKind.ESNext },
  });
  if (diagnostics.length > 0 || outputText.includes('import ')) {
    throw new Error(`${fileName} does not tell its types by itself: write down those of its exports`);
  }
  return outputText;
}

/** Copies these native parts into the package's folder, where npm does not install them. */
export function copyModules(native: readonly string[], folder: string): void {
  for (const name of native) {
    const from = join(ROOT, 'node_modules', name);
    cpSync(from, join(folder, 'node_modules', name), { recursive: true, dereference: true });
  }
}

/** Packs that folder; gives the archive's name in `out`. */
export function packNpmPackage(folder: string, out: string): string {
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', out, folder];
  return execFileSync('npm', args, { cwd: out, encoding: 'utf8' }).trim();
}
