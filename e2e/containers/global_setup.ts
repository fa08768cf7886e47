import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { containerImages } from '../support/container_images.ts';
import { closeEngine, containersMissing, openEngine } from '../support/docker_engine.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of this test run's engine, if a test needs one. */
    engineFolder: string;
    /** The engine ends at the latest with this process. */
    engineWatches: number;
    /** Why containers cannot be tested: something is missing, or does not work. Both null if they can. */
    containers: { readonly missing: string | null; readonly failure: string | null };
  }
}

/**
 * Gives the test files of one run the engine and the images that they share, and ends the engine after the last of them. If
 * something prevents that, it is reported once here and by one test, and the suites are skipped.
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

/** Starts the engine and makes the images. Returns null, or one line that says why that failed. */
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
