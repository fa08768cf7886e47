import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { signInLinkReply } from '../../shared/wire/account.ts';
import { type HostedUser, PUBLIC_URL, signInBrowser } from '../runtimes/hosted_users.ts';
import type { InProcess } from '../runtimes/in_process.ts';
import { TestSidecar } from '../runtimes/sidecar_client.ts';
import { fetchAs, type SentAs } from '../support/fetch_as.ts';
import type { Svc } from '../support/svc.ts';

/** Somebody who asks: with a program, with a browser, and with a sidecar. Redirects are not followed. */
export interface Asker {
  readonly sidecar: TestSidecar;
  /** With the key or the token of the program. */
  readonly byKey: (path: string, sent?: SentAs) => Promise<Response>;
  readonly inBrowser: (path: string, sent?: SentAs) => Promise<Response>;
  /** Of the console. */
  readonly origin: string;
}

/** The owner of a local control plane. */
export async function localAsker(svc: Svc): Promise<Asker> {
  const { control_url: url } = svc.runFile;
  const localKey = readFileSync(join(svc.home, 'local.key'), 'utf8').trim();
  const sidecar = await TestSidecar.make((path, init) => fetch(url + path, init));
  await sidecar.enrol(localKey);
  const link = new URL(signInLinkReply.parse((await svc.api('POST', '/v1/sign-in-links')).body).url);
  const signedIn = await fetchAs(link.host, url + link.pathname, {});
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
  return {
    sidecar,
    origin: link.origin,
    byKey: (path, sent) =>
      fetch(url + path, {
        redirect: 'manual',
        ...sent,
        headers: { authorization: `Bearer ${localKey}`, ...sent?.headers },
      }),
    inBrowser: (path, sent) => fetchAs(link.host, url + path, { ...sent, headers: { cookie, ...sent?.headers } }),
  };
}

/** Somebody of a hosted control plane. */
export async function hostedAsker(control: InProcess, { caller, tokens }: HostedUser): Promise<Asker> {
  const cookie = await signInBrowser(control, caller);
  const asker = await askerWith(control, { authorization: `Bearer ${tokens.access_token}` }, { cookie });
  await asker.sidecar.enrol(tokens.access_token);
  return asker;
}

/** Somebody who has these headers: with none, nobody who is known. The sidecar is not enrolled. */
export async function askerWith(
  { send }: Pick<InProcess, 'send'>,
  ofProgram: Readonly<Record<string, string>>,
  ofBrowser: Readonly<Record<string, string>> = {},
): Promise<Asker> {
  return {
    sidecar: await TestSidecar.make(send),
    origin: PUBLIC_URL,
    byKey: (path, sent) => send(PUBLIC_URL + path, { ...sent, headers: { ...ofProgram, ...sent?.headers } }),
    inBrowser: (path, sent) => send(PUBLIC_URL + path, { ...sent, headers: { ...ofBrowser, ...sent?.headers } }),
  };
}
