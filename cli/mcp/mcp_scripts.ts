import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { requireOutside } from '../launch/hosts/allow_command.ts';
import { askYes } from '../terminal/ask.ts';
import { homeOf } from '../up/home.ts';
import type { MachineServer } from './mcp_machine.ts';
import { installOffered, type PackageOffer } from './mcp_package.ts';

/** The options of `svc mcp consent` about install scripts, checked before anything is looked up. An agent may run none. */
export function requireScriptsOptions(
  call: Call<{ readonly scripts?: readonly string[]; readonly yes?: boolean; readonly withdraw?: boolean }>,
): void {
  const { args, context, options, print } = call;
  if (options.scripts === undefined) return;
  if (args[0] === undefined || options.withdraw === true) {
    throw new CliError(EXIT.usage, '--scripts needs the name of the server that it is for, and no --withdraw');
  }
  requireOutside(call, homeOf(context, options), 'which may not run install scripts on this machine');
  if (options.yes === true || (context.interactive && !print.json)) return;
  throw new CliError(EXIT.usage, 'stdin is not a terminal, so the install scripts cannot be confirmed', ['Add --yes.']);
}

/** Installs the package of a server that has consent again, with the scripts that the person named. */
export async function addScripts(
  call: Call<{ readonly yes?: boolean }>,
  { server }: Pick<MachineServer, 'server'>,
  offer: PackageOffer | null,
): Promise<boolean> {
  const { context, options, print } = call;
  if (offer !== null && offer.scripts.length > 0) {
    print.note(toPrintable(`installs ${offer.text}`));
    const question = `Run the install scripts of ${offer.scripts.join(', ')} on this machine with your rights?`;
    if (options.yes !== true && !(await askYes(context, toPrintable(question)))) {
      print.note(`${server.name}: no install script was run`);
      return false;
    }
  }
  await installOffered(call, server.name, offer);
  if (offer?.replaces === true) print.note(`A running ${server.name} is not changed until it is started again.`);
  return true;
}
