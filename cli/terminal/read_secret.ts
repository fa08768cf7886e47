import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { MAX_SECRET_BYTES } from '../../shared/model/secret.ts';
import type { CliContext, InputStream } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { unreadableFile } from './unreadable_file.ts';

/** The source of a secret's value. Never an argument: the process list and the shell history would show it. */
export interface SecretSource {
  readonly stdin?: boolean;
  readonly file?: string;
  /** By default, one trailing line break is dropped, because editors and `echo` add one. */
  readonly keepNewline?: boolean;
}

/** Reads a secret from stdin, a file, or a prompt without echo. */
export async function readSecret(context: CliContext, source: SecretSource): Promise<string> {
  if (source.stdin === true && source.file !== undefined) {
    throw new CliError(EXIT.usage, 'both --stdin and --file were given: choose one');
  }
  const value = withoutLineBreak(await rawValue(context, source), source.keepNewline === true);
  if (value === '') throw new CliError(EXIT.usage, 'the secret is empty: nothing was stored');
  return value;
}

async function rawValue(context: CliContext, source: SecretSource): Promise<string> {
  if (source.file !== undefined) return decode(await readFile(resolve(context.workingDirectory, source.file)));
  // Also with --stdin: the terminal would echo the input.
  if (context.interactive) return promptHidden(context.stdin, context.stderr, 'Secret (not shown): ');
  requireSource(context, source);
  return decode(await readAll(context.stdin));
}

/** Refuses a command that would ask where nobody can answer, before it does anything else. */
export function requireSource(context: Pick<CliContext, 'interactive'>, { stdin, file }: SecretSource): void {
  if (context.interactive || stdin === true || file !== undefined) return;
  throw new CliError(EXIT.usage, 'stdin is not a terminal, so there is no prompt: say where the secret comes from', [
    'Pipe it in (printf %s "$TOKEN" | svc ... --stdin), or read it from a file (--file FILE).',
  ]);
}

/** Drops exactly one trailing line break (LF or CRLF); every other byte belongs to the secret. */
function withoutLineBreak(text: string, keep: boolean): string {
  return keep ? text : text.replace(/\r?\n$/, '');
}

async function readFile(path: string): Promise<Buffer> {
  try {
    return await readAll(createReadStream(path));
  } catch (error) {
    if (error instanceof CliError || !(error instanceof Error)) throw error;
    // The value of --file is not quoted: it may be a secret that was typed in the wrong place.
    throw unreadableFile('the file of --file', error);
  }
}

async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    const part: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    bytes += part.length;
    // Reads one byte more than the limit, plus a line break, to detect a secret that is too large.
    if (bytes > MAX_SECRET_BYTES + 2) throw tooLargeError();
    chunks.push(part);
  }
  return Buffer.concat(chunks);
}

function tooLargeError(): CliError {
  return new CliError(
    EXIT.usage,
    `the secret is larger than ${MAX_SECRET_BYTES} bytes: a credential is a header value, not a file`,
  );
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new CliError(EXIT.usage, 'the secret is not UTF-8 text: store it as base64 if the service accepts that');
  }
}

const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const CTRL_U = '\u0015';

/** Prompts at a terminal without echo. */
export function promptHidden(
  input: InputStream,
  output: { write(text: string): unknown },
  question: string,
): Promise<string> {
  return new Promise((done, reject) => {
    let typed = '';
    const end = (): void => {
      input.off('data', onData);
      input.setRawMode?.(false);
      input.pause();
      output.write('\n');
    };
    const onData = (chunk: Buffer | string): void => {
      for (const character of chunk.toString()) {
        if (character === CTRL_C) {
          end();
          reject(new CliError(EXIT.failed, 'cancelled: nothing was stored'));
          return;
        }
        if (character === '\r' || character === '\n' || character === CTRL_D) {
          end();
          done(typed);
          return;
        }
        typed = applyKey(typed, character);
      }
    };
    // First, or the terminal shows what is pasted at the sight of the question.
    input.setRawMode?.(true);
    output.write(question);
    input.on('data', onData);
    input.resume();
  });
}

function applyKey(typed: string, character: string): string {
  if (character === CTRL_U) return '';
  return character === '\u007f' || character === '\b' ? Array.from(typed).slice(0, -1).join('') : typed + character;
}
