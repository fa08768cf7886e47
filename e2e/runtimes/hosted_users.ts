import type { Role } from '../../shared/model/role.ts';
import type { TokenPair } from '../../shared/wire/device.ts';
import { errorBody } from '../../shared/wire/errors.ts';
import type { Caller } from '../../worker/kernel/caller.ts';
import { newBrowserSession } from '../../worker/services/people/sign_in.ts';
import { findAccount } from '../../worker/store/accounts.ts';
import { insertBrowserSession } from '../../worker/store/browser_sessions.ts';
import { newProgramSignIn } from '../../worker/tokens/program_sign_ins.ts';
import { addUser, type InProcess, startInProcess } from './in_process.ts';

export const PUBLIC_URL = 'https://control.example.test';

/** The settings of a hosted control plane: no local key, and a public URL. */
export function startHosted(): Promise<InProcess> {
  return startInProcess({ localKey: null, publicUrl: PUBLIC_URL });
}

/** A program signed in as a user, like after `svc login`. */
export async function signInProgram(control: InProcess, caller: Caller, client = 'laptop'): Promise<TokenPair> {
  const { context } = control;
  const account = await findAccount(context.database, caller.userId);
  const made = await newProgramSignIn(context, account!, { client, provider: 'general' });
  if (!made.ok) throw new Error(made.error.message);
  await context.database.write(made.value.statements);
  return made.value.tokens;
}

/** The cookie of a browser that is signed in as a user. */
export async function signInBrowser(control: InProcess, caller: Caller): Promise<string> {
  const { context } = control;
  const meta = { provider: 'general', client: 'Browser' };
  const { token, session } = await newBrowserSession(context, caller.userId, meta);
  await context.database.write(insertBrowserSession(context.database, session, 0));
  return `${context.local === null ? '__Host-session' : 'svc_session'}=${token}`;
}

/** A user of a hosted control plane, with calls that use the user's access token. */
export interface HostedUser {
  readonly caller: Caller;
  readonly tokens: TokenPair;
  readonly call: (
    method: string,
    path: string,
    body?: unknown,
    more?: Readonly<Record<string, string>>,
  ) => Promise<Response>;
}

/** Adds a user, as the first of a new enterprise or a member of one, and signs a program in. */
export async function hostedUser(
  control: InProcess,
  enterpriseId: string | null = null,
  role?: Role,
): Promise<HostedUser> {
  const caller = await addUser(control.context, enterpriseId, role);
  const tokens = await signInProgram(control, caller);
  return { caller, tokens, call: (...request) => callAs(control, tokens.access_token, ...request) };
}

/** The owner of a new enterprise, and a member of it. */
export async function ownerWithMember(
  control: InProcess,
): Promise<{ readonly owner: HostedUser; readonly member: HostedUser }> {
  const owner = await hostedUser(control);
  const args = [owner.caller.userId];
  await control.context.database.client.execute({ sql: `UPDATE users SET role = 'owner' WHERE id = ?`, args });
  return { owner, member: await hostedUser(control, owner.caller.enterpriseId) };
}

/** A call with a bearer token and a JSON body. */
export function callAs(
  control: InProcess,
  token: string,
  method: string,
  path: string,
  body?: unknown,
  more: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more };
  return control.send(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

/** The code of a refusal, or the status of another reply. */
export async function outcome(answer: Response | Promise<Response>): Promise<string | number> {
  const reply = await answer;
  return reply.ok ? reply.status : errorBody.parse(await reply.json()).error.code;
}
