import { type Command, Option } from 'commander';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import { handle, collectValue, type CommandLine } from '../command_line.ts';
import { AGENT_FLAG } from '../command_separator.ts';
import { PLAIN_HTTP_OPTION, PLAIN_HTTP_TEXT } from './hosts/plain_http_option.ts';
import { addLimitOptions } from './limit_options.ts';
import { SCOPE_OPTION, SCOPE_TEXT, USE_OPTION, USE_TEXT } from './use_option.ts';
import { runInSession } from './run_in_session.ts';
import type { RunOptions } from './run_options.ts';

/** `svc run -- COMMAND`. */
export function addRunCommand(line: CommandLine, signals: SignalSource): void {
  const plain = line.program
    .command('run')
    .description('run a command, or an agent by its name (`svc agents`); its HTTPS goes through the proxy')
    .usage('[options] -- COMMAND [ARGUMENT...], or [options] AGENT [ARGUMENT...]')
    .argument('<command...>', 'the command and its arguments, after --');
  const run = withSessionOptions(plain)
    .option('--no-sandbox', 'agents: run without the sandbox that is their default')
    .option('--login <name>', 'agents: use this one of its logins, such as key, subscription or account')
    .option('--quiet', 'agents: do not print the number of requests at the end')
    .addOption(new Option(`${AGENT_FLAG} <name>`).hideHelp());
  handle<RunOptions>(line, run, async (call) => {
    const [command = '', ...args] = call.args;
    if (call.options.agent !== undefined) {
      // Loaded on use, so that a run of a command starts faster.
      const { runAgent } = await import('../agents/agent_run.ts');
      return runAgent(call, signals, call.options.agent, args);
    }
    return (await runInSession(call, signals, { command, args })).status;
  });
}

/** Adds the options of a command's session, which no agent's profile is needed for. */
export function withSessionOptions(command: Command): Command {
  return addLimitOptions(command)
    .option('--name <text>', 'a name for the session')
    .option('--ttl <length>', 'end the session after this long, such as 8h')
    .option('--mcp <server>', 'let the command use this MCP server (repeatable)', collectValue)
    .option(
      '--keep-env <name>',
      'pass on this variable although it holds a credential; recorded (repeatable)',
      collectValue,
    )
    .option(
      '--allow-only <host>',
      'the proxy allows only bound hosts, those of `svc allow` and this one; a program can bypass it (repeatable)',
      collectValue,
    )
    .option(
      '--allow <host>',
      'also reach this host: on another port than 443, or, with --egress=sealed, at all (repeatable)',
      collectValue,
    )
    .option(PLAIN_HTTP_OPTION, PLAIN_HTTP_TEXT, collectValue)
    .option(USE_OPTION, USE_TEXT, collectValue)
    .option(SCOPE_OPTION, SCOPE_TEXT, collectValue)
    .option(
      '--sandbox',
      'run it in a sandbox: its folder, its programs, and no network but the proxy (Linux: bubblewrap; macOS: not tried)',
    )
    .option('--sandbox-read <path>', 'also show this path in the sandbox, read-only (repeatable)', collectValue)
    .option('--sandbox-write <path>', 'also show this path in the sandbox, writable (repeatable)', collectValue)
    .option(
      '--egress <reach>',
      'hosts that a sandbox reaches: open (all, default), sealed (bound and allowed ones), or sealed,public (all public ones)',
    )
    .option('--relay', 'also support programs that cannot send proxy credentials, such as Java and Chromium');
}
