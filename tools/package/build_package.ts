import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import http from 'node:http';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type InputOptions, type OutputChunk, type Plugin, rolldown } from 'rolldown';
import { PROGRAMS } from '../../machine/program_file.ts';
import { checkStartChunks, startChunks } from './start_chunks.ts';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

/** What the programs read beside their code. */
const FILES = [
  'CHANGELOG.md',
  'bin',
  'catalog',
  'package.json',
  'sandbox/bubblewrap/sandbox_init.cjs',
  'sandbox/bubblewrap/server_init.cjs',
  'sandbox/carrier/carry.cjs',
  'sandbox/carrier/companion.cjs',
  'sandbox/carrier/multiplex.cjs',
  'sandbox/engine/agent_seccomp.json',
  'sandbox/image',
  'sidecar/reach/listen_in_namespace.cjs',
  'worker/islands',
  'worker/pages/icon.svg',
  'worker/pages/icon_waiting.svg',
  'worker/pages/style.css',
];

/** Stands for the URL of the package's folder until it is known in which file the code is. */
const PLACEHOLDER = '__SVC_PACKAGE__';

/** A module of ours knows its own address, as in the checkout, and not that of the bundle's file that it is in. */
function keepAddresses(): Plugin {
  return {
    name: 'keep-addresses',
    transform(code, id) {
      if (id.includes('/node_modules/') || !code.includes('import.meta.url')) return null;
      const path = relative(ROOT, id).replace(/\.tsx?$/, '.js');
      return code.replaceAll('import.meta.url', `new URL(${JSON.stringify(path)}, ${PLACEHOLDER}).href`);
    },
    renderChunk(code, { fileName }) {
      if (!code.includes(PLACEHOLDER)) return null;
      const up = relative(dirname(fileName), '.') || '.';
      return `const ${PLACEHOLDER} = new URL('${up}/', import.meta.url);\n${code}`;
    },
  };
}

/** The libSQL client's native part, which no bundle can hold, is loaded by us. */
function checkNativePart(): Plugin {
  const loading = 'return require(`@libsql/${target}`);';
  const loader = JSON.stringify(join(ROOT, 'tools/package/native/load_native_part.ts'));
  return {
    name: 'check-native-part',
    transform(code, id) {
      if (!id.endsWith('/node_modules/libsql/index.js')) return null;
      if (!code.includes(loading)) throw new Error(`${id} loads its native part in another way`);
      return code.replace(loading, `return require(${loader}).loadNativePart(target);`);
    },
  };
}

/**
 * Takes `node:http` without the names that are fetch's. A module that imports it makes Node read each of its names, and these load all
 * of fetch: that would take a tenth of a second of each start, and 3 MB. The build fails if one of them is imported from there.
 */
function leaveFetch(): Plugin {
  const taken = '\0http-without-fetch';
  const names = Object.keys(http).filter((name) => !['CloseEvent', 'MessageEvent', 'WebSocket'].includes(name));
  return {
    name: 'leave-fetch',
    resolveId(source, _importer, { kind }) {
      return kind !== 'require-call' && /^(node:)?http$/.test(source) ? taken : null;
    },
    load(id) {
      if (id !== taken) return null;
      return `const http = process.getBuiltinModule('node:http');
        export default http;
        export const { ${names.join(', ')} } = http;`;
    },
  };
}

const BUNDLING = {
  platform: 'node',
  // Its main file takes `require` as an argument, so that no bundler sees what it requires.
  resolve: { alias: { 'jsonc-parser': join(ROOT, 'node_modules/jsonc-parser/lib/esm/main.js') } },
  // @iarna/toml looks for a module by eval.
  checks: { eval: false },
} satisfies InputOptions;

/** The bundled code of the programs. */
export async function bundle(): Promise<readonly OutputChunk[]> {
  const input = Object.fromEntries(PROGRAMS.map((name) => [name, join(ROOT, `${name}.ts`)]));
  const build = await rolldown({
    cwd: ROOT,
    input,
    ...BUNDLING,
    plugins: [checkNativePart(), leaveFetch(), keepAddresses()],
  });
  const { output } = await build.generate({
    format: 'esm',
    chunkFileNames: 'lib/[hash].js',
    codeSplitting: { groups: startChunks(ROOT) },
    comments: { legal: false },
  });
  await build.close();
  const chunks = output.filter((file) => file.type === 'chunk');
  checkStartChunks(chunks);
  chunks.push(...(await bundleSessionModule()));
  const unbundled = chunks.flatMap(({ code }) => code.match(/\brequire\((['"])\.[^)]*\)/g) ?? []);
  if (unbundled.length > 0) throw new Error(`the package lacks what is required by ${unbundled.join(', ')}`);
  return chunks;
}

/** The package's `svc/session`: for programs of others, so it is one file that shares no code with ours. */
const SESSION_MODULE = 'sdk/session';

async function bundleSessionModule(): Promise<readonly OutputChunk[]> {
  const input = { [SESSION_MODULE]: join(ROOT, 'cli/sdk/create_session.ts') };
  const build = await rolldown({ cwd: ROOT, input, platform: 'node' });
  const { output } = await build.generate({ format: 'esm', comments: { legal: false } });
  await build.close();
  const chunks = output.filter((file) => file.type === 'chunk');
  const packages = chunks.flatMap(({ moduleIds }) => moduleIds.filter((id) => id.includes('/node_modules/')));
  if (chunks.length !== 1 || packages.length > 0) {
    throw new Error(`${SESSION_MODULE} is not one file without packages: ${packages.join(', ')}`);
  }
  return chunks;
}

/** The path itself, or the files of the folder that it names, without tests. */
function filesUnder(path: string): readonly string[] {
  if (!statSync(join(ROOT, path)).isDirectory()) return [path];
  const found = readdirSync(join(ROOT, path), { recursive: true, withFileTypes: true });
  const files = found.filter((each) => each.isFile() && !each.name.endsWith('.test.ts'));
  return files.map((each) => relative(ROOT, join(each.parentPath, each.name))).toSorted();
}

/** Writes the bundled programs and the files that they read into a folder. */
export function writePackage(chunks: readonly OutputChunk[], folder: string): void {
  for (const { fileName, code } of chunks) {
    mkdirSync(dirname(join(folder, fileName)), { recursive: true });
    writeFileSync(join(folder, fileName), code);
  }
  for (const file of FILES.flatMap(filesUnder)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    copyFileSync(join(ROOT, file), join(folder, file));
  }
}

/**
 * Builds svc as a package: each program of PROGRAMS bundled for Node, and the files that they read. It lies in `folder`, under a
 * name that follows from its content, so that one that is there already is taken. Returns the package's folder.
 */
export async function buildPackage(folder: string): Promise<string> {
  const chunks = await bundle();
  const hash = createHash('sha256');
  for (const { fileName, code } of chunks) hash.update(`${fileName}\n${code}\n`);
  for (const file of FILES.flatMap(filesUnder)) hash.update(`${file}\n`).update(readFileSync(join(ROOT, file)));
  const path = join(folder, `svc-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const draft = mkdtempSync(join(folder, 'draft-'));
  writePackage(chunks, draft);
  symlinkSync(join(ROOT, 'node_modules'), join(draft, 'node_modules'));
  try {
    renameSync(draft, path);
  } catch (error) {
    // Another run has made the same in the meantime.
    if (!existsSync(path)) throw error;
    rmSync(draft, { recursive: true });
  }
  return path;
}
