import { openSync, closeSync, fstatSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import type { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { connectorSpec, type ConnectorSpecRecord } from '../../shared/wire/connectors/connector_spec.ts';
import type { CliContext } from '../context.ts';
import { CliError, EXIT } from '../exit_codes.ts';
import { parseYaml } from '../terminal/parse_yaml.ts';
import { unreadableFile } from '../terminal/unreadable_file.ts';
import { toPrintable } from '../../shared/model/shown_text.ts';

/** Maximum size of a spec: the limit of an API request body. */
export const MAX_SPEC_BYTES = 1024 * 1024;

const MOST_PROBLEMS = 20;

/** The text of a file, or of stdin for `-`. */
export async function readInput(context: CliContext, name: string, mostBytes: number): Promise<string> {
  const bytes = name === '-' ? await readStream(context.stdin, mostBytes) : readFile(context, name, mostBytes);
  if (bytes === null) throw new CliError(EXIT.failed, `${name} is larger than ${mostBytes} bytes`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new CliError(EXIT.failed, `${name} is not text (UTF-8)`);
  }
}

async function readStream(stream: Readable, mostBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    const part: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    bytes += part.length;
    if (bytes > mostBytes) return null;
    chunks.push(part);
  }
  return Buffer.concat(chunks);
}

function readFile(context: CliContext, name: string, mostBytes: number): Buffer | null {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(resolve(context.workingDirectory, name), 'r');
    return fstatSync(descriptor).size > mostBytes ? null : readFileSync(descriptor);
  } catch (error) {
    throw unreadableFile(name, error);
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

/** A spec in the form of the control API, or one line for each problem. */
export function parseSpec(text: string): Result<ConnectorSpecRecord, readonly string[]> {
  const parsed = parseYaml(text);
  return parsed.ok ? checkSpec(parsed.value) : parsed;
}

/** The same for a value that is already parsed. */
export function checkSpec(value: unknown): Result<ConnectorSpecRecord, readonly string[]> {
  const parsed = connectorSpec.safeParse(value);
  if (parsed.success) return ok(parsed.data);
  const lines = parsed.error.issues.map((issue) => issueLine(issue, value));
  const more = lines.length - MOST_PROBLEMS;
  return err(more > 0 ? [...lines.slice(0, MOST_PROBLEMS), `... and ${more} more`] : lines);
}

/** `operations[2].path (get-item) must begin with "/"`. */
function issueLine(issue: z.core.$ZodIssue, spec: unknown): string {
  let field = '';
  for (const part of issue.path) field += typeof part === 'number' ? `[${part}]` : `${field && '.'}${String(part)}`;
  const name = issue.path[0] === 'operations' ? operationName(spec, issue.path[1]) : null;
  return toPrintable([field, name === null ? '' : `(${name})`, issue.message].filter((part) => part !== '').join(' '));
}

function operationName(spec: unknown, index: PropertyKey | undefined): string | null {
  const operations = memberOf(spec, 'operations');
  const name = index === undefined ? undefined : memberOf(memberOf(operations, index), 'name');
  return typeof name === 'string' ? name.slice(0, 64) : null;
}

function memberOf(value: unknown, key: PropertyKey): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
