import { healthReply, signInLinkReply } from '../../shared/wire/account.ts';
import { controlClient, controlUrlOf } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';

/**
 * `svc console`. The link is printed and no browser is started with it: arguments of a program are seen by every user of the
 * machine, and whoever opens the link first is signed in.
 */
export function addConsoleCommand(line: CommandLine): void {
  const command = line.program
    .command('console')
    .description('print the address of the web console; on this machine, a link that signs a browser in once');
  handle(line, command, showConsole);
}

async function showConsole({ context, options, print }: Call): Promise<undefined> {
  const client = controlClient(context, options);
  const { mode } = await client.call('GET', '/v1/health', healthReply);
  if (mode === 'hosted') {
    const url = new URL('/', controlUrlOf(context, options)).href;
    print.line({ url, expires_at: null }, url);
    return;
  }
  const link = await client.call('POST', '/v1/sign-in-links', signInLinkReply);
  print.line(link, link.url);
  print.note(
    `It signs one browser in, until ${link.expires_at}. Where a browser does not find the name: docs/sign-in.md.`,
  );
}
