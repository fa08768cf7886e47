import { constants } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import * as nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The build folder of an image. */
export interface ImageContext {
  readonly path: string;
  readonly remove: () => Promise<void>;
}

const MCP_FOLDER = 'mcp';

/**
 * Creates the build folder from the programs in `source`. svc-mcp is written as plain JavaScript, so that older versions of
 * Node run it; the Node at `node` is copied unless null.
 */
export async function makeImageContext(source: string, node: string | null): Promise<ImageContext> {
  const path = await mkdtemp(join(tmpdir(), 'svc-image-'));
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true });
  try {
    await mkdir(join(path, MCP_FOLDER));
    for (const entry of await readdir(source, { withFileTypes: true })) {
      if (entry.isFile() && !entry.name.endsWith('.test.ts'))
        await copyFile(join(source, entry.name), join(path, entry.name));
    }
    await writePrograms(join(source, MCP_FOLDER), join(path, MCP_FOLDER));
    if (node !== null) await copyProgram(node, join(path, MCP_FOLDER, 'node'));
    return { path, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function writePrograms(source: string, to: string): Promise<void> {
  const names = (await readdir(source)).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  for (const name of names) {
    const text = await readFile(join(source, name), 'utf8');
    await writeFile(join(to, name.replace(/\.ts$/, '.mjs')), plainJavaScript(text), { mode: 0o644 });
  }
}

/** The program without its types; imports name the files that {@link makeImageContext} writes. */
export function plainJavaScript(text: string): string {
  const emitWarning = process.emitWarning.bind(process);
  // Hides the warning that type stripping is experimental; svc itself starts the same way.
  process.emitWarning = () => undefined;
  try {
    return nodeModule.stripTypeScriptTypes(text).replaceAll(/(from '\.\/[a-z_]+)\.ts';/g, "$1.mjs';");
  } finally {
    process.emitWarning = emitWarning;
  }
}

async function copyProgram(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  await chmod(to, 0o755);
}
