import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ROOT } from '../support/program.ts';

const attempts = z.record(z.string(), z.object({ out: z.boolean(), why: z.string(), unless: z.string().nullable() }));

/** What became of each way out of `escapes.py`. */
export type Attempts = z.output<typeof attempts>;

/** For `python3 -c`, with the file of the targets. */
export const ESCAPES = readFileSync(join(ROOT, 'e2e/sandbox/programs/escapes.py'), 'utf8');

export function readAttempts(stdout: string, stderr: string): Attempts {
  try {
    return attempts.parse(JSON.parse(stdout));
  } catch (error) {
    throw new Error(`the attempts did not run: ${stdout}${stderr}`, { cause: error });
  }
}

export function namesOf(tried: Attempts, are: (each: Attempts[string]) => boolean): readonly string[] {
  return Object.entries(tried).flatMap(([name, each]) => (are(each) ? [`${name}: ${each.why}`] : []));
}
