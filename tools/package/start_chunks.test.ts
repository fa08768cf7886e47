import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { checkStartChunks, startChunks } from './start_chunks.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const NAMES = ['start', 'calls', 'commands', 'run'];
const without = (missing: string) => NAMES.filter((name) => name !== missing).map((name) => ({ name, moduleIds: [] }));

/** Where the chunks begin, by a build that knows these modules. */
const beginnings = (knows: (path: string) => boolean): readonly string[] => {
  const asked: string[] = [];
  const getModuleInfo = (path: string): object | null => {
    asked.push(path);
    return knows(path) ? { importedIds: [] } : null;
  };
  for (const { name } of startChunks(ROOT)) {
    if (typeof name !== 'function') throw new Error('a chunk is chosen by a function');
    Reflect.apply(name, null, [join(ROOT, 'other.ts'), { getModuleInfo }]);
  }
  return asked;
};

describe('the chunks that a start loads', () => {
  test.each(NAMES)('are all there: %s', (missing) => {
    expect(() => checkStartChunks(without(missing))).toThrow(
      `the chunk ${missing}, which is read at each start, was not`,
    );
  });

  test.each(NAMES)('have no other package than commander: %s', (name) => {
    const withPackage = (path: string) => [...without(name), { name, moduleIds: [`/srv/node_modules/${path}`] }];
    expect(() => checkStartChunks(withPackage('commander/index.js'))).not.toThrow();
    expect(() => checkStartChunks(withPackage('zod/index.js'))).toThrow('zod/index.js');
  });

  test('begin at files that exist', () => {
    const paths = beginnings(() => true);
    expect(paths).toContain(join(ROOT, 'cli/main.ts'));
    expect(paths.filter((path) => !existsSync(path))).toEqual([]);
  });

  test('begin at no file that the package does not have, such as one that was moved', () => {
    expect(() => beginnings((path) => !path.endsWith('run_command.ts'))).toThrow('begins at');
  });
});
