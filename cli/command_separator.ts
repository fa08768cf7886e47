/** The global options that take a value. */
export const GLOBAL_WITH_VALUE: ReadonlySet<string> = new Set(['--home', '--control']);
/** The commands that run another command, with their options (and the global ones) that take a value. */
const WITH_VALUE: Readonly<Record<string, ReadonlySet<string>>> = {
  run: new Set([...GLOBAL_WITH_VALUE, '--name', '--ttl', '--mcp', '--keep-env']),
  launch: new Set([
    ...GLOBAL_WITH_VALUE,
    '--sandbox',
    '--sandbox-proxy',
    '--egress',
    '--image',
    '--mount',
    '--env',
    '--unsealed',
    '--mcp',
    '--workdir',
    '--name',
    '--ttl',
  ]),
};

/**
 * Inserts `--` before the command of `svc run` and `svc launch` if the user left it out. Everything after the command's first
 * word belongs to the command: `svc run agent --json` passes `--json` to the agent.
 */
export function withCommandSeparator(argv: readonly string[]): readonly string[] {
  let withValue: ReadonlySet<string> | null = null;
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? '';
    if (word === '--') return argv;
    if (word.startsWith('-')) {
      if ((withValue ?? GLOBAL_WITH_VALUE).has(word)) index += 1;
    } else if (withValue !== null) {
      return [...argv.slice(0, index), '--', ...argv.slice(index)];
    } else if (Object.hasOwn(WITH_VALUE, word)) {
      withValue = WITH_VALUE[word] ?? GLOBAL_WITH_VALUE;
    } else {
      return argv;
    }
  }
  return argv;
}
