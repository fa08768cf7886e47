import { z } from 'zod';
import { buildOperationRequest } from '../../shared/connect/operation_request.ts';
import type { ConnectorSpec, Operation } from '../../shared/model/connector.ts';
import { LIMIT_SETTINGS } from '../../shared/model/limit_settings.ts';
import { toConnectorSpec } from '../../shared/wire/connectors/connector_spec.ts';
import { runReply, type RunReply } from '../../shared/wire/connectors/connectors.ts';
import { errorBody, type ErrorBody } from '../../shared/wire/errors.ts';
import { didYouMean } from '../../shared/model/near_match.ts';
import { controlClient } from '../clients.ts';
import type { Call } from '../command_line.ts';
import { parseArgs, parseTypedArgs } from './connector_args.ts';
import { MAX_SPEC_BYTES, readInput } from './connector_spec_input.ts';
import type { OwnerOption } from '../command_options.ts';
import { readConnector } from './connector_lookup.ts';
import { withProgress } from './connector_progress.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { errorOfReply, type HttpClient, type RawReply } from '../terminal/http_client.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import type { Printer } from '../terminal/output.ts';
import { parseJson } from '../../shared/model/json.ts';

export interface TestOptions extends OwnerOption {
  readonly arg?: readonly string[];
  readonly args?: string;
  readonly host?: string;
}

/** A run waits up to 60 s for an approval, plus the longest timeout that a setting allows. */
const TIMEOUT_MS = (90 + LIMIT_SETTINGS.runTimeoutSeconds.max) * 1000;

/** `svc connector test FQN OPERATION`: checks the args locally and names each invalid one before sending anything. */
export async function testOperation(call: Call<TestOptions>): Promise<number> {
  const { options, print } = call;
  const [wanted = '', name = ''] = call.args;
  const client = controlClient(call.context, options);
  const record = await readConnector(client, wanted, options.owner);
  const spec = toConnectorSpec(record.spec);
  const operation = operationNamed(spec, name);
  const args = await argsOf(call, operation);
  checkRequest(spec, operation, args, options.host);
  const body = {
    connector_fqn: spec.fqn,
    operation: operation.name,
    args,
    ...(options.host && { host: options.host }),
  };
  const sent = client.send('POST', '/v1/connector-operations/run', { body, timeoutMs: TIMEOUT_MS });
  const reply = readReply(client, spec, await withProgress(print, `waiting for ${spec.title} ...`, sent));
  printReply(call, reply);
  return reply.upstream_status < 400 ? EXIT.ok : EXIT.failed;
}

/** Longer lists of names are not printed in an error. */
const MOST_NAMED = 12;

function operationNamed({ fqn, operations }: ConnectorSpec, name: string): Operation {
  const found = operations.find((operation) => operation.name === name);
  if (found !== undefined) return found;
  const names = operations.map((operation) => operation.name);
  const list = names.length <= MOST_NAMED ? `It has ${names.join(', ')}.` : `\`svc connector show ${fqn}\` lists them.`;
  throw new CliError(EXIT.usage, `${fqn} has no operation ${JSON.stringify(name)}${didYouMean(name, names)}`, [list]);
}

async function argsOf(call: Call<TestOptions>, operation: Operation): Promise<Readonly<Record<string, unknown>>> {
  const { args: text = '{}', arg = [] } = call.options;
  const source = text.startsWith('@') ? await readInput(call.context, text.slice(1), MAX_SPEC_BYTES) : text;
  const whole = parseArgs(source);
  if (!whole.ok) throw new CliError(EXIT.usage, whole.error);
  const typed = parseTypedArgs(operation.inputs, arg, whole.value);
  if (!typed.ok) throw new CliError(EXIT.usage, `${operation.name} was not run:`, typed.error.map(toPrintable));
  return typed.value;
}

function checkRequest(spec: ConnectorSpec, operation: Operation, args: unknown, host: string | undefined): void {
  const built = buildOperationRequest({ spec }, operation, args, host);
  if (built.ok) return;
  const lines = built.error.map(({ field, message }) => toPrintable(`${field} ${message}`));
  throw new CliError(EXIT.usage, `${operation.name} was not run:`, lines);
}

/** Returns the reply of a run; throws a refusal with its fix. */
function readReply(client: HttpClient, spec: ConnectorSpec, raw: RawReply): RunReply {
  if (raw.status === 200) {
    const reply = runReply.safeParse(parseJson(raw.text));
    if (reply.success) return reply.data;
    throw new CliError(EXIT.failed, `${client.origin} answered in a format that this svc does not know`, [
      'Their versions probably differ: `svc status` shows both.',
    ]);
  }
  const refusal = errorOfReply('the control plane', raw);
  const fix = fixOf(errorBody.safeParse(parseJson(raw.text)).data?.error, spec);
  throw fix === null ? refusal : new CliError(EXIT.failed, refusal.message, [...refusal.fixes, fix]);
}

/** The fix for a refusal; null if the message needs none. */
function fixOf(error: ErrorBody['error'] | undefined, { fqn, credential }: ConnectorSpec): string | null {
  if (error?.code === 'reauthorisation_required') return `Authorise it again: svc connector authorize ${fqn}`;
  if (error?.code === 'binding_required') {
    const how = credential.kind === 'api_key' ? 'credential set' : 'authorize';
    return `Give it a credential: svc connector ${how} ${fqn}`;
  }
  const approval = z.object({ approval_id: z.string() }).safeParse(error?.details).data?.approval_id;
  if (error?.code !== 'approval_required' || approval === undefined) return null;
  return `Allow it with \`svc approvals approve ${toPrintable(approval)}\`, then run the same command again within 15 minutes.`;
}

function printReply({ context, print }: Call, reply: RunReply): void {
  const body = Buffer.from(reply.body_base64, 'base64');
  const type = reply.content_type === '' ? 'no content type' : toPrintable(reply.content_type);
  if (!print.json) print.note(`${reply.upstream_status}  ${type}  ${body.length} bytes  ${reply.audit_id}`);
  if (print.json) print.data(reply, () => '');
  else if (print.person) print.raw(personText(print, body));
  else context.stdout.write(body);
}

/** A reply is untrusted: at a terminal, control characters are escaped and binary bodies are omitted. */
function personText(print: Printer, body: Buffer): string {
  if (body.length === 0) return '';
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return `${print.paint('dim', '(binary; redirect stdout to a file to keep it)')}\n`;
  }
  const value = parseJson(text);
  const shown = value === undefined ? text : JSON.stringify(value, null, 2);
  return `${shown.split('\n').map(toPrintable).join('\n').trimEnd()}\n`;
}
