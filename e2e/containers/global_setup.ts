import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { closeEngine } from '../support/docker_engine.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the engine of this run of tests is kept, if a test needs one. */
    engineFolder: string;
    /** The engine ends with this process at the latest. */
    engineWatches: number;
  }
}

/** Gives the test files of one run a place for the engine they share, and ends it after the last of them. */
export function setup(project: TestProject): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-engine-'));
  project.provide('engineFolder', folder);
  project.provide('engineWatches', process.pid);
  return async () => {
    await closeEngine(folder);
    rmSync(folder, { recursive: true, force: true });
  };
}
