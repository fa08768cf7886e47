/** The global options that take a value. */
export const GLOBAL_WITH_VALUE: ReadonlySet<string> = new Set(['--home', '--control']);
/** `svc run` and `svc launch`: the profile that was named instead of a command. */
export const AGENT_FLAG = '--agent';
/** Those of a session of `svc run` and `svc join`. */
const OF_SESSION = [
  '--name',
  '--ttl',
  '--mcp',
  '--keep-env',
  '--allow',
  '--allow-only',
  '--plain-http',
  '--use',
  '--scope',
  '--requests-per-minute',
  '--requests-per-day',
  '--bytes-per-day',
  '--egress',
  '--sandbox-read',
  '--sandbox-write',
];
/** The commands that run another command, with their options (and the global ones) that take a value. */
const WITH_VALUE: Readonly<Record<string, ReadonlySet<string>>> = {
  run: new Set([...GLOBAL_WITH_VALUE, ...OF_SESSION, '--login', AGENT_FLAG]),
  join: new Set([
    ...GLOBAL_WITH_VALUE,
    ...OF_SESSION,
    '--service-account',
    '--token-file',
    '--token-variable',
    '--audience',
    '--minutes',
    '--hand-over',
    '--upstream-ca',
    '--resolve',
  ]),
  launch: new Set([
    ...GLOBAL_WITH_VALUE,
    '--sandbox',
    '--sandbox-proxy',
    '--egress',
    '--allow',
    '--plain-http',
    '--use',
    '--scope',
    '--requests-per-minute',
    '--requests-per-day',
    '--bytes-per-day',
    '--image',
    '--mount',
    '--env',
    '--unsealed',
    '--mcp',
    '--workdir',
    '--name',
    '--ttl',
    '--login',
    '--base',
    AGENT_FLAG,
  ]),
};

/**
 * Inserts `--` before the command of `svc run`, `svc join` and `svc launch` if the user left it out. Everything after the command's first
 * word belongs to the command: `svc run agent --json` passes `--json` to the agent. Where that word is the name of an agent's
 * profile, `run` and `launch` run the agent by its profile; after a `--` of the user's own it is a command like any other. Everything
 * after the name in `svc NAME` belongs to the agent, including `--help` and `--`.
 */
export function withCommandSeparator(argv: readonly string[], isAgent: (word: string) => boolean): readonly string[] {
  let runner: string | null = null;
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? '';
    const [before, after] = [argv.slice(0, index), argv.slice(index)];
    if (word === '--') return argv;
    if (word.startsWith('-')) {
      if ((runner === null ? GLOBAL_WITH_VALUE : optionsWithValue(runner)).has(word)) index += 1;
    } else if (runner !== null) {
      if (runner !== 'join' && isAgent(word)) return [...before, `${AGENT_FLAG}=${word}`, '--', ...after];
      return [...before, '--', ...after];
    } else if (Object.hasOwn(WITH_VALUE, word)) {
      runner = word;
    } else {
      return isAgent(word) ? [...before, word, '--', ...after.slice(1)] : argv;
    }
  }
  return argv;
}

function optionsWithValue(runner: string): ReadonlySet<string> {
  return WITH_VALUE[runner] ?? GLOBAL_WITH_VALUE;
}
