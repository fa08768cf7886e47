import type { LaunchPorts } from '../../sandbox/launch/launch_ports.ts';
import type { SignalSource } from '../../sandbox/engine/run_child.ts';
import type { Call } from '../command_line.ts';
import type { LaunchRequest } from './launch_options.ts';

/** The command gets a terminal if both our stdin and stdout are one. */
export function wantsTty(call: Call, request: Pick<LaunchRequest, 'detach'>): boolean {
  const { interactive, stdout } = call.context;
  return interactive && stdout.isTTY === true && !request.detach;
}

/** What every launch needs from the command line. */
export function callPorts(call: Call, signals: SignalSource): Pick<LaunchPorts, 'signals' | 'warn' | 'pause'> {
  const never = new AbortController().signal;
  return { signals, warn: (text) => call.print.warn(text), pause: (ms) => call.context.pause(ms, never) };
}
