import { controlClient } from '../clients.ts';
import { handle, type Call, type CommandLine } from '../command_line.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { readOptionText } from './option_text.ts';

interface ApiOptions {
  readonly data?: string;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** `svc api METHOD PATH`. */
export function addApiCommand(line: CommandLine): void {
  const api = line.program
    .command('api')
    .description('call the control API as yourself and print the reply body, also of an error')
    .argument('<method>', 'GET, POST, PUT, DELETE ...')
    .argument('<path>', 'such as /v1/me')
    .option('--data <json>', 'the request body; @FILE reads it from a file, @- from stdin (use that for secrets)');
  handle<ApiOptions>(line, api, callApi);
}

async function callApi(call: Call<ApiOptions>): Promise<number> {
  const [typedMethod = '', path = ''] = call.args;
  const method = typedMethod.toUpperCase();
  if (!METHODS.includes(method)) {
    throw new CliError(EXIT.usage, `METHOD is ${JSON.stringify(typedMethod)}: use one of ${METHODS.join(', ')}`);
  }
  if (!path.startsWith('/') || path.startsWith('//')) {
    throw new CliError(EXIT.usage, `the path ${JSON.stringify(path)} must begin with one "/", such as /v1/me`);
  }
  const body = call.options.data === undefined ? undefined : await readBody(call, call.options.data);
  const client = controlClient(call.context, call.options);
  const reply = await client.send(method, path, body === undefined ? {} : { body });
  if (reply.text !== '') call.print.raw(reply.text.endsWith('\n') ? reply.text : `${reply.text}\n`);
  if (reply.status < 400) return EXIT.ok;
  call.context.stderr.write(`svc api: ${method} ${path.split('?')[0]} answered ${reply.status}\n`);
  return EXIT.failed;
}

async function readBody(call: Call<ApiOptions>, data: string): Promise<unknown> {
  const text = await readOptionText(call, '--data', data);
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's message quotes the text, which may contain a secret.
    const at = error instanceof Error ? /position \d+/.exec(error.message)?.[0] : undefined;
    throw new CliError(EXIT.usage, `--data is not JSON${at === undefined ? '' : ` (at ${at})`}`);
  }
}
