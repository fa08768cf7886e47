import { z } from 'zod';
import { programFile } from '../../../machine/program_file.ts';
import { type MoveReply, moveReply } from '../../../shared/wire/vault_moves.ts';
import type { Call } from '../../command_line.ts';
import { CliError, EXIT } from '../../exit_codes.ts';
import { runToEnd } from '../../launch/run_to_end.ts';
import { homeOf } from '../../up/home.ts';
import { environmentOfVault } from '../vault_unlock.ts';
import type { Destination } from './destination.ts';
import type { MovedValue } from './moved_things.ts';

const sealedAnswer = z.array(z.strictObject({ sealed: z.string(), proof: z.string() }).nullable());

/** What the other vault answered for a value, once its proof was checked; a text says why it was not stored. */
export type SentValue = MoveReply['state'] | { readonly problem: string };

/**
 * Compares values with those of the other vault, or stores them there. This program sees only ciphertexts and digests: the
 * worker's program opens the vault. An answer that the value is there counts only with the proof that whoever answers has it.
 */
export async function sendValues(
  call: Call,
  there: Destination,
  action: 'compare' | 'store',
  values: readonly MovedValue[],
): Promise<ReadonlyMap<string, SentValue>> {
  const answers = new Map<string, SentValue>();
  if (values.length === 0) return answers;
  const sealed = await sealValues(call, there, action, values);
  for (const [index, { key }] of values.entries()) {
    const one = sealed[index] ?? null;
    answers.set(key, one === null ? { problem: 'it is not here any more' } : await sendSealed(there, one));
  }
  return answers;
}

/** Sends one ciphertext. Throws if the other side claims to have the value and cannot prove it. */
export async function sendSealed(
  { client, ticket }: Pick<Destination, 'client' | 'ticket'>,
  { sealed, proof }: { readonly sealed: string; readonly proof: string },
): Promise<SentValue> {
  try {
    const reply = await client.call('POST', '/v1/vault-moves/values', moveReply, { body: { ticket, sealed } });
    if (reply.state !== 'same' && reply.state !== 'stored') return reply.state;
    if (reply.proof === proof) return reply.state;
    throw new CliError(EXIT.failed, WRONG_PROOF, ['Nothing was removed here. Do not move a vault to this server.']);
  } catch (error) {
    // A refusal is about this value alone; a failure ends the move, which can be repeated.
    if (!(error instanceof CliError) || error.apiCode === null) throw error;
    return { problem: error.message };
  }
}

const WRONG_PROOF = 'the other control plane says that it has a value, and cannot prove it';

/** Only the worker's program may open the vault. It gets public keys and places, and prints ciphertexts and digests. */
async function sealValues(
  call: Call,
  { host, payload }: Destination,
  action: 'compare' | 'store',
  values: readonly MovedValue[],
): Promise<z.infer<typeof sealedAnswer>> {
  const { context, options } = call;
  const places = values.map(({ from, to }) => ({ from, to }));
  const request = {
    action,
    host,
    user_id: payload.user_id,
    key: payload.key,
    with_ends: payload.takes_ends === true,
    values: places,
  };
  const ended = await runToEnd({
    file: programFile('worker/entries/vault_move'),
    args: ['--home', homeOf(context, options)],
    env: await environmentOfVault(call),
    workingDirectory: context.workingDirectory,
    input: JSON.stringify(request),
  });
  if (ended.exitCode !== 0) throw new CliError(ended.exitCode, ended.lastWords);
  return sealedAnswer.parse(JSON.parse(ended.stdout));
}
