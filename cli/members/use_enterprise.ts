import { hostname } from 'node:os';
import { tokenPair } from '../../shared/wire/device.ts';
import { membershipsReply } from '../../shared/wire/enterprise.ts';
import { controlClient, findRunning } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readSignIn, signInOf, writeSignIn } from '../sign_in/sign_in_file.ts';
import { CONTROL_NAME, REACH_FIX } from '../sign_in/sign_in_tokens.ts';
import { httpClient } from '../terminal/http_client.ts';
import { homeOf } from '../up/home.ts';
import { enrolThisMachine, ownSidecar, retireSidecar } from '../up/own_sidecar.ts';

/**
 * `svc enterprise use`: the tokens of the other user come first. Only when there are some, the sidecar here is retired
 * and the old sign-in ends.
 */
export async function useEnterprise(call: Call): Promise<undefined> {
  const { context, options, print } = call;
  const home = homeOf(context, options);
  const signIn = readSignIn(home);
  if (signIn === null) throw new CliError(EXIT.failed, `${home} has no sign-in`, ['Sign in first: svc login']);
  if (findRunning(home) !== null) {
    throw new CliError(EXIT.failed, 'the sidecar is running: stop it first, so that it sends its last events', [
      'Run "svc down", or press Ctrl-C in the terminal where "svc sidecar" runs.',
    ]);
  }
  const { control_url: origin } = signIn;
  const before = controlClient(context, { ...options, control: origin });
  const { items } = await before.call('GET', '/v1/enterprises', membershipsReply);
  const to = items.find(({ id, slug }) => [id, slug].includes(call.args[0] ?? ''));
  if (to === undefined) {
    const fix = ['svc enterprise list shows yours.'];
    throw new CliError(EXIT.failed, `you have no enterprise ${JSON.stringify(call.args[0])}`, fix);
  }
  const value = { enterprise_id: to.id, user_id: to.user_id };
  if (to.current) {
    print.line(value, `already in ${to.name}`);
    return undefined;
  }
  const tokens = await before.call('POST', `/v1/enterprises/${to.id}/sign-in`, tokenPair);
  const hasSidecar = (await ownSidecar(home)) !== null;
  if (hasSidecar) await retireSidecar(before, home, context.now());
  const old = readSignIn(home) ?? signIn;
  await writeSignIn(home, signInOf(origin, tokens, context.now()));
  const client = httpClient({ origin, token: null, name: CONTROL_NAME, fetch: context.fetch, startFix: REACH_FIX });
  await client.callEmpty('POST', '/auth/revoke', { body: { refresh_token: old.refresh_token } });
  const after = controlClient(context, { ...options, control: origin });
  const sidecarId = hasSidecar ? await enrolThisMachine(after, home, hostname()) : null;
  print.line({ ...value, sidecar_id: sidecarId }, `in ${to.name} as ${to.role}`);
  return undefined;
}
