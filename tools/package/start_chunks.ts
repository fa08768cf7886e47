import { join } from 'node:path';
import type { CodeSplittingGroup, OutputChunk } from 'rolldown';

/** What the program itself loads. Not with it in one file: it waits for what it loads later, which must not wait for its file. */
const MAIN = 'cli/main.ts';
/** The end of a run. */
const END = ['cli/launch/end_run.ts'];
/** `svc --version`. */
const VERSION = ['cli/program.ts', 'cli/command_line.ts'];
/** What else `svc run` loads. */
const RUN = ['cli/launch/run_command.ts', 'cli/agents/own_names.ts'];

/** Gives modules with all that they import before they run. */
type Reach = (paths: readonly string[]) => ReadonlySet<string>;

const shared = (some: ReadonlySet<string>, others: ReadonlySet<string>) => [...some].filter((id) => others.has(id));

/** The chunks with their modules. A module is in the first chunk that has it. */
const CHUNKS: readonly (readonly [chunk: string, listModules: (reach: Reach) => ReadonlySet<string>])[] = [
  ['start', (reach) => new Set([...reach([MAIN]), ...shared(reach(END), reach(VERSION))])],
  ['calls', (reach) => reach(END)],
  ['commands', (reach) => reach(VERSION)],
  ['run', (reach) => reach(RUN)],
];

/**
 * The chunks of the commands that are started most. Finding and linking a file takes longer than running it, so what these commands
 * load together is in one file. What one of them does not need stays out of the files that it loads: so the end of a run loads `start`
 * and `calls`, `svc --version` loads `start` and `commands`, and `svc run` loads all four.
 */
export function startChunks(root: string): CodeSplittingGroup[] {
  return CHUNKS.map(([chunk, listModules], at) => {
    let modules: ReadonlySet<string> | null = null;
    return {
      priority: CHUNKS.length - at,
      debugName: chunk,
      name: (id, context) => {
        modules ??= listModules((paths) => {
          const found = new Set(paths.map((path) => join(root, path)));
          // One that was moved would silently leave its chunk empty.
          const unknown = [...found].find((each) => context.getModuleInfo(each) === null);
          if (unknown !== undefined)
            throw new Error(`the chunk ${chunk} begins at ${unknown}, which is not in the package`);
          // A set also visits what is added meanwhile.
          for (const each of found) {
            for (const imported of context.getModuleInfo(each)?.importedIds ?? []) found.add(imported);
          }
          return found;
        });
        return modules.has(id) && id !== join(root, MAIN) ? chunk : null;
      },
    };
  });
}

/** Throws if a chunk is not there, or if a command that is started often would load another package than the one that reads its arguments. */
export function checkStartChunks(chunks: readonly Pick<OutputChunk, 'name' | 'moduleIds'>[]): void {
  const missing = CHUNKS.find(([chunk]) => !chunks.some(({ name }) => name === chunk));
  if (missing !== undefined) throw new Error(`the chunk ${missing[0]}, which is read at each start, was not made`);
  for (const { name, moduleIds } of chunks.filter((each) => CHUNKS.some(([chunk]) => chunk === each.name))) {
    const found = moduleIds.find((id) => id.includes('/node_modules/') && !id.includes('/node_modules/commander/'));
    if (found !== undefined) throw new Error(`the chunk ${name}, which is read at each start, has ${found} in it`);
  }
}
