/** The options of `svc run`, and the global ones, that take the next word as their value. */
const WITH_VALUE = new Set(['--home', '--control', '--name', '--ttl']);

/**
 * The arguments with `--` before the command of `svc run`, where the user left it out: from its first word on, everything
 * is the command's own, so that `svc run agent --json` hands `--json` to the agent.
 */
export function withCommandSeparator(argv: readonly string[]): readonly string[] {
  let inRun = false;
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? '';
    if (word === '--') return argv;
    if (word.startsWith('-')) {
      if (WITH_VALUE.has(word)) index += 1;
    } else if (inRun) {
      return [...argv.slice(0, index), '--', ...argv.slice(index)];
    } else if (word === 'run') {
      inRun = true;
    } else {
      return argv;
    }
  }
  return argv;
}
