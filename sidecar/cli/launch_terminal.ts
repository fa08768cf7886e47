import type { LaunchPorts } from '../launch/launch_ports.ts';
import type { SignalSource } from '../launch/run_child.ts';
import type { Call } from './command_line.ts';
import type { LaunchRequest } from './launch_options.ts';

/** How the streams of this process are: `terminal` when Ctrl-C comes from one, `tty` when the command shall have one. */
export function terminalOf(
  call: Call,
  request: Pick<LaunchRequest, 'detach'>,
): { readonly terminal: boolean; readonly tty: boolean } {
  const { interactive, stdout } = call.context;
  return { terminal: interactive, tty: interactive && stdout.isTTY === true && !request.detach };
}

/** What every launch needs of the command line. */
export function callPorts(call: Call, signals: SignalSource): Pick<LaunchPorts, 'signals' | 'warn' | 'pause'> {
  const never = new AbortController().signal;
  return { signals, warn: (text) => call.print.warn(text), pause: (ms) => call.context.pause(ms, never) };
}
