import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const checks = z.array(
  z.object({ id: z.string(), status: z.string(), description: z.string(), errorMessage: z.string().optional() }),
);
type Check = z.output<typeof checks>[number];

/** The checks that the suite wrote below a folder (`-o`), by the folder of each scenario. */
export function readSuiteResults(place: string): ReadonlyMap<string, readonly Check[]> {
  const files = readdirSync(place, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('checks.json'),
  );
  return new Map(
    files.map((file) => [
      file.replace(/-\d{4}-\d\d-\d\dT[^/]*\/checks\.json$/, ''),
      checks.parse(JSON.parse(readFileSync(join(place, file), 'utf8'))),
    ]),
  );
}

/** A check that did not pass. */
export function isUnmet({ status }: Check): boolean {
  return status === 'FAILURE' || status === 'WARNING';
}
