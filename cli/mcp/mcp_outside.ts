import type { Call } from '../command_line.ts';
import { requireOutside } from '../launch/hosts/allow_command.ts';
import { homeOf } from '../up/home.ts';

/** An agent must not accept the change of a tool that a person has to look at, or allow itself one that asks. */
export function requireOutsideForTools(call: Call): void {
  requireOutside(call, homeOf(call.context, call.options), 'which may not decide about tools');
}
