import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { containerImages } from '../support/container_images.ts';
import { closeEngine, containersMissing, openEngine } from '../support/docker_engine.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the engine of this run of tests is kept, if a test needs one. */
    engineFolder: string;
    /** The engine ends with this process at the latest. */
    engineWatches: number;
    /** Why no container can be tried: something is not here, or what is here did not do. Null and null where they can. */
    containers: { readonly missing: string | null; readonly failure: string | null };
  }
}

/**
 * Gives the test files of one run the engine and the images that they share, and ends the engine after the last of them. What
 * stands in the way is said once, here, and by one test; the suites are skipped then.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-engine-'));
  const missing = containersMissing();
  if (missing !== null) process.stdout.write(`no container is tried: ${missing}\n`);
  project.provide('engineFolder', folder);
  project.provide('engineWatches', process.pid);
  project.provide('containers', { missing, failure: missing === null ? await prepare(folder) : null });
  return async () => {
    await closeEngine(folder);
    rmSync(folder, { recursive: true, force: true });
  };
}

/** The engine and the images; the value is why they could not be had, in one line, or null. */
async function prepare(folder: string): Promise<string | null> {
  try {
    const engine = await openEngine(folder, process.pid);
    process.stdout.write(`containers run in the engine at ${engine.endpoint}\n`);
    await containerImages(engine);
    return null;
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    process.stderr.write(`no container can be tried: ${said}\n`);
    const lines = said.trim().split('\n');
    return `no container can be tried: ${[...new Set([...lines.slice(0, 1), ...lines.slice(-2)])].join(' ... ')}`;
  }
}
