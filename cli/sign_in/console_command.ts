import { healthReply, signInLinkReply } from '../../shared/wire/account.ts';
import { controlClient, controlUrlOf } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';

/**
 * `svc console`: prints the link and does not start a browser. Every user of the machine can see a program's arguments, and the
 * first to open the link is signed in.
 */
export function addConsoleCommand(line: CommandLine): void {
  const command = line.program
    .command('console')
    .description('print the address of the web console; for a local control plane, a one-time sign-in link');
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
    `The link works once, until ${link.expires_at}. If the browser does not resolve the name: docs/sign-in.md.`,
  );
}
