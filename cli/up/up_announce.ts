import { join, relative } from 'node:path';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { secretsPage } from '../../shared/wire/secrets.ts';
import type { Call } from '../command_line.ts';
import type { CliContext } from '../context.ts';
import { CliError } from '../exit_codes.ts';
import { type HttpClient, httpClient } from '../terminal/http_client.ts';
import { formatGuide, type UpFacts } from './up_guide.ts';

/** What has been started, and with which key its owner signs in. */
type Started = Pick<UpFacts, 'home' | 'controlUrl' | 'proxyUrl' | 'inBackground'> & { readonly key: string };

/** Prints where everything listens, a sign-in link and the first steps. */
export async function announce(call: Call, started: Started): Promise<void> {
  const { context, print } = call;
  const { controlUrl, proxyUrl, home, key, inBackground } = started;
  const name = 'the control plane';
  const client = httpClient({ origin: controlUrl, token: key, name, fetch: context.fetch, startFix: '' });
  const [signIn, isSealed] = await Promise.all([signInLink(context, client), hasSecrets(client)]);
  const facts = { ...namesOf(call, home), controlUrl, proxyUrl, signIn, isFirst: !isSealed, inBackground };
  print.line(
    {
      control_url: controlUrl,
      proxy_url: proxyUrl,
      home,
      sign_in_url: signIn?.url ?? null,
      version: facts.version,
    },
    formatGuide(facts, print.paint).trimEnd(),
  );
}

/** Creates a one-time sign-in link. If that fails, everything else still works, so it is only reported. */
async function signInLink(context: CliContext, client: HttpClient): Promise<UpFacts['signIn']> {
  try {
    const reply = await client.call('POST', '/v1/sign-in-links', signInLinkReply);
    return { url: reply.url, expiresAt: reply.expires_at };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    context.stderr.write(`svc: no sign-in link: ${error.message}\n`);
    return null;
  }
}

/** Whether a credential is stored. Only the first-run guide depends on it, so a failed call counts as none. */
async function hasSecrets(client: HttpClient): Promise<boolean> {
  try {
    const { items } = await client.call('GET', '/v1/secrets', secretsPage, { query: { limit: '1' } });
    return items.length > 0;
  } catch (error) {
    if (error instanceof CliError) return false;
    throw error;
  }
}

function namesOf(call: Call, home: string): Pick<UpFacts, 'version' | 'home' | 'command' | 'homeFlag'> {
  const { context, options } = call;
  const fromHere = relative(context.workingDirectory, join(context.root, 'bin', 'svc'));
  const command = fromHere.startsWith('..') ? join(context.root, 'bin', 'svc') : `./${fromHere}`;
  return { version: context.version, home, command, homeFlag: options.home === undefined ? '' : ` --home ${home}` };
}
