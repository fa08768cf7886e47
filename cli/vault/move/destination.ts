import { join } from 'node:path';
import { compactVerify } from 'jose';
import { parseJson } from '../../../shared/model/json.ts';
import { parseControlUrl } from '../../../shared/model/settings.ts';
import { toPrintable } from '../../../shared/model/shown_text.ts';
import { auditHeadsReply } from '../../../shared/wire/audit_heads.ts';
import {
  type MoveKeyPayload,
  moveKeyPayload,
  VAULT_MOVE_KEY_TYP,
  type VaultMove,
  vaultMove,
} from '../../../shared/wire/vault_moves.ts';
import { publicKey } from '../../audit/control_plane_key.ts';
import { controlClient } from '../../clients.ts';
import type { Call } from '../../command_line.ts';
import { CliError, EXIT } from '../../exit_codes.ts';
import { signInHere } from '../../sign_in/login_command.ts';
import { readSignIn } from '../../sign_in/sign_in_file.ts';
import type { HttpClient } from '../../terminal/http_client.ts';
import { homeOf, prepareHome } from '../../up/home.ts';

/** The control plane that a vault moves to, and the key that values are sealed to. */
export interface Destination {
  readonly client: HttpClient;
  readonly host: string;
  readonly ticket: string;
  readonly payload: MoveKeyPayload;
  /** The key of the control plane, and whether the caller named it. */
  readonly controlPlaneKey: string;
  readonly isNamed: boolean;
}

interface MoveTo {
  readonly to: string;
  readonly key?: string;
}

/** The origin that the option names. */
export function originOf(to: string): string {
  const parsed = parseControlUrl(to);
  if (parsed.ok) return parsed.value;
  throw new CliError(EXIT.usage, `--to ${parsed.error}`);
}

/**
 * Signs in to the other control plane if that is not done yet, and begins a move there. Refuses a key that the control plane
 * did not sign, one of another control plane than `--key` names, and a move of a vault to itself, whose end would remove it.
 */
export async function openDestination(call: Call<MoveTo>, here: HttpClient): Promise<Destination> {
  const { options } = call;
  const origin = originOf(options.to);
  if (origin === here.origin) throw toItself();
  const client = await signedIn(call, origin);
  const move = await client.call('POST', '/v1/vault-moves', vaultMove);
  const payload = await openKey(move, options.key);
  const { control_plane_id: own } = await here.call('GET', '/v1/audit-events/heads', auditHeadsReply);
  if (payload.control_plane_id === own) throw toItself();
  const controlPlaneKey = move.control_plane_key.x;
  const isNamed = options.key !== undefined;
  return { client, host: new URL(origin).hostname, ticket: move.ticket, payload, controlPlaneKey, isNamed };
}

/**
 * The sign-in is in a folder of its own: a state directory belongs to one control plane, and the local one has to start again.
 */
async function signedIn(call: Call<MoveTo>, origin: string): Promise<HttpClient> {
  const { context, print } = call;
  const home = join(homeOf(context, call.options), 'hosted');
  const options = { ...call.options, home, control: origin };
  for (const note of prepareHome(home, process.getuid?.())) print.warn(note);
  if (readSignIn(home)?.control_url !== origin) await signInHere({ ...call, options }, origin);
  return controlClient(context, options);
}

function toItself(): CliError {
  const message = '--to is the control plane of this machine itself: a vault is not moved to itself';
  return new CliError(EXIT.usage, message, ['Name the hosted control plane, such as --to https://control.example.com']);
}

async function openKey(move: VaultMove, named: string | undefined): Promise<MoveKeyPayload> {
  const x = move.control_plane_key.x;
  if (named !== undefined && named !== x) {
    throw new CliError(EXIT.failed, `the control plane has the key ${toPrintable(x)}, which is not the one of --key`, [
      'Nothing was sent. Ask its operator for the key: svc audit heads --json shows it as control_plane_key.x there.',
    ]);
  }
  const key = await publicKey(x);
  const verified =
    key === null ? null : await compactVerify(move.signed, key, { algorithms: ['EdDSA'] }).catch(() => null);
  const parsed =
    verified?.protectedHeader['typ'] === VAULT_MOVE_KEY_TYP
      ? moveKeyPayload.safeParse(parseJson(new TextDecoder().decode(verified.payload)))
      : null;
  if (parsed?.success === true) return parsed.data;
  throw new CliError(EXIT.failed, 'the key of the move is not signed by the control plane: nothing was sent');
}
