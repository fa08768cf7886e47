import type { InstallPreview, MarketplaceInput } from '../../shared/wire/marketplace.ts';
import { askLine } from '../terminal/ask.ts';
import type { Call } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { formatPublished } from './mcp_entry_text.ts';
import { promptHidden } from '../terminal/read_secret.ts';
import type { InputProblem } from '../../shared/mcp/install/input_values.ts';

/** Values for a server's inputs, in the form of the API. */
export type Inputs = Readonly<Record<string, string | readonly string[]>>;

/** Parses `--input NAME=value`; a repeated name is a list. */
export function inputsOf(flags: readonly string[] = []): Inputs {
  const inputs = new Map<string, string[]>();
  for (const flag of flags) {
    const at = flag.indexOf('=');
    if (at < 1) throw new CliError(EXIT.usage, '--input must have the form NAME=value');
    const name = flag.slice(0, at);
    inputs.set(name, [...(inputs.get(name) ?? []), flag.slice(at + 1)]);
  }
  const entries = [...inputs].map(
    ([name, values]) => [name, values.length === 1 ? (values[0] ?? '') : values] as const,
  );
  return Object.fromEntries(entries);
}

/** Refuses secrets on the command line: other users see the process list, and the shell keeps a history. */
export function refuseTypedSecrets(preview: InstallPreview, inputs: Inputs): void {
  const secret = preview.inputs.find(({ name, secret: isSecret }) => isSecret && Object.hasOwn(inputs, name));
  if (secret === undefined) return;
  throw new CliError(
    EXIT.usage,
    `${formatPublished(secret.name)} is a secret: it cannot be given on the command line, because the process list and the shell history would show it`,
    [
      `Type it at the prompt, or use --credential ${formatPublished(secret.credential ?? secret.name)} --stdin.`,
      'Treat the value as exposed: replace it at the service that issued it.',
    ],
  );
}

/** Prompts for missing values; throws without a terminal, or if a given value is invalid. */
export async function askInputs(
  { context, print }: Call,
  preview: InstallPreview,
  problems: readonly InputProblem[],
): Promise<Inputs> {
  const wrong = problems.filter(({ code }) => code !== 'missing');
  if (wrong.length > 0 || !context.interactive || print.json) throw inputProblem(problems);
  const answers: [string, string][] = [];
  for (const { input } of problems) {
    const asked = preview.inputs.find(({ name }) => name === input);
    if (asked === undefined) throw inputProblem(problems);
    answers.push([input, await askInput({ context, print }, asked)]);
  }
  return Object.fromEntries(answers);
}

async function askInput({ context }: Pick<Call, 'context' | 'print'>, input: MarketplaceInput): Promise<string> {
  const about = input.description === '' ? input.goes_to.join(', ') : input.description;
  const question = formatPublished(`${input.name} (${about}): `);
  if (input.secret) return promptHidden(context.stdin, context.stderr, question.replace(/: $/, ', not shown: '));
  const answer = await askLine(context, question);
  if (answer === null || answer === '') throw new CliError(EXIT.failed, 'cancelled: nothing was installed');
  return answer;
}

function inputProblem(problems: readonly InputProblem[]): CliError {
  const lines = problems.map(({ input, message }) => formatPublished(`${input} ${message}`));
  const missing = problems
    .filter(({ code }) => code === 'missing')
    .map(({ input }) => `--input ${formatPublished(input)}=VALUE`);
  return new CliError(EXIT.failed, 'the server needs values that are missing or invalid', [
    ...lines,
    ...(missing.length === 0 ? [] : [`Give ${missing.join(' ')}`]),
  ]);
}
