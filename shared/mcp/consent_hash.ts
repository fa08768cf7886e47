import { canonicalJson } from '../audit/canonical_json.ts';
import type { McpServer } from '../model/mcp_server.ts';
import { commandDangers, listUncheckedReasons } from './command_dangers.ts';

/** What the person at a machine says yes to: everything that decides which code runs there, and how. */
export type ConsentSubject = Pick<McpServer, 'mode' | 'command' | 'env' | 'version' | 'isolation'>;

/** Only a server that starts a program on the machine needs its consent. */
export function needsConsent(server: Pick<McpServer, 'mode'>): boolean {
  return server.mode === 'local';
}

/**
 * Why a server runs code that nobody checked, each as the rest of a sentence that begins with "the server"; empty when it
 * does not. Such a server takes a consent of its own.
 */
export function findUncheckedCode({
  mode,
  command,
  env,
}: Pick<McpServer, 'mode' | 'command' | 'env'>): readonly string[] {
  return mode === 'local' ? listUncheckedReasons(commandDangers(command, env)) : [];
}

/**
 * The text whose SHA-256 consent is pinned to: canonical JSON of mode, command, env, version and isolation, and whether it
 * runs code that nobody checked: a consent that was given to the same server as a checked one is none. Plain values
 * of env are in it, for a value can be code (NODE_OPTIONS); references are in it as they are, so that storing another
 * credential asks nobody again. What changes nothing about what runs (name, description, tools) is not.
 */
export function consentText(server: ConsentSubject): string {
  const { mode, command, env, version, isolation } = server;
  const isUnchecked = findUncheckedCode(server).length > 0;
  const what = { mode, command: toWellFormedList(command), env: toWellFormedRecord(env), version, isolation };
  return canonicalJson(isUnchecked ? { ...what, unchecked: true } : what);
}

/** A lone surrogate, which canonical JSON cannot hold, is told apart from the character that programs read it as. */
function toWellFormedList(texts: readonly string[]): readonly string[] {
  return texts.map((text) => (/\p{Cs}/u.test(text) ? `\u0000${JSON.stringify(text)}` : text));
}

function toWellFormedRecord(record: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const names = toWellFormedList(Object.keys(record));
  const values = toWellFormedList(Object.values(record));
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));
}
