import { explainInput, explainReply, type ExplainReply } from '../../shared/wire/host_bindings.ts';
import { controlClient } from '../clients.ts';
import { collectValue, handle, type Call, type CommandLine } from '../command_line.ts';
import { chooseSecrets, type UseOptions } from '../launch/chosen_secrets.ts';
import { useSecretsField } from '../launch/session_access.ts';
import { USE_OPTION, USE_TEXT } from '../launch/use_option.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';
import { readOptionText } from '../terminal/option_text.ts';
import type { Style } from '../terminal/output.ts';

const STYLES: { readonly [D in ExplainReply['decision']]: Style } = {
  connector: 'green',
  binding: 'green',
  passthrough: 'cyan',
  refused: 'red',
};

/** `svc explain METHOD URL`. */
export function addExplainCommand(line: CommandLine): void {
  const explain = line.program
    .command('explain')
    .description('explain which path a request would take through the proxy, and why')
    .argument('<method>', 'such as GET')
    .argument('<url>', 'such as https://api.example.com/items')
    .option(USE_OPTION, USE_TEXT, collectValue)
    .option('--graphql <document>', "the GraphQL document in its body, for a connector's GraphQL endpoint")
    .option(
      '--body <json>',
      'its JSON body, for operations that a connector tells apart by it; @FILE reads it from a file, @- from stdin',
    );
  handle(line, explain, explainRequest);
}

interface ExplainOptions extends UseOptions {
  readonly graphql?: string;
  readonly body?: string;
}

async function explainRequest(call: Call<ExplainOptions>): Promise<undefined> {
  const [method = '', url = ''] = call.args;
  // An older control plane refuses the field, and does not explain the request without the choice.
  const chosen = useSecretsField(await chooseSecrets(call));
  const { body } = call.options;
  const input = explainInput.safeParse({
    method: method.toUpperCase(),
    url,
    document: call.options.graphql,
    body: body === undefined ? undefined : await readOptionText(call, '--body', body),
    ...chosen,
  });
  if (!input.success) {
    const lines = input.error.issues.map((issue) => `${issue.path.join('.').toUpperCase()} ${issue.message}`);
    throw new CliError(EXIT.usage, 'this request cannot be explained:', lines);
  }
  const client = controlClient(call.context, call.options);
  const reply = await client.call('POST', '/v1/host-bindings/explain', explainReply, { body: input.data });
  call.print.data(reply, () => explanationText(reply, (text) => call.print.paint(STYLES[reply.decision], text)));
}

/** The decision, the bindings involved, and the reasons. The last one decides, so the code of a refusal is beside it. */
function explanationText(reply: ExplainReply, paint: (text: string) => string): string {
  const code = reply.code === null ? '' : ` (${reply.code})`;
  const lines = [
    `${paint(reply.decision)}  ${reply.method} ${toPrintable(reply.host + reply.path)}`,
    ...(reply.operation === null ? [] : [operationLine(reply.operation)]),
    ...reply.bindings.map((binding) => {
      const stored = binding.credential_stored ? '' : ', not stored yet';
      const left = binding.used === 'not_chosen' ? ', not chosen' : '';
      const refused = binding.refusal === null ? '' : `; refused: ${binding.refusal.message}`;
      return toPrintable(
        `  ${binding.id}  ${binding.host}  ${binding.scheme}, ${binding.emit_mechanism}, ${binding.credential_ref}${stored}${left}${refused}`,
      );
    }),
    ...reply.reasons.map((reason, index) => {
      return `  - ${toPrintable(reason)}${index === reply.reasons.length - 1 ? code : ''}`;
    }),
  ];
  return `${lines.join('\n')}\n`;
}

function operationLine(operation: NonNullable<ExplainReply['operation']>): string {
  const { connector_id: id, fqn, version, operation: name, effect, approval, credential_ref: reference } = operation;
  const approved = approval === 'required' ? ', needs an approval' : '';
  const stored = operation.credential_stored ? '' : ', not stored yet';
  return toPrintable(`  ${id}  ${fqn} ${version}  ${name}, ${effect}${approved}, ${reference}${stored}`);
}
