import { canonicalJson } from '../audit/canonical_json.ts';
import type { McpServer } from '../model/mcp_server.ts';
import { commandDangers, listUncheckedReasons } from './command_dangers.ts';

/** What a person at a machine consents to: everything that decides which code runs there, and how. */
type ConsentSubject = Pick<McpServer, 'mode' | 'command' | 'env' | 'version' | 'isolation'>;

/** Only a server that starts a program on the machine needs consent. */
export function needsConsent(server: Pick<McpServer, 'mode'>): boolean {
  return server.mode === 'local';
}

/** Why a server runs unchecked code, each as a predicate for "the server"; empty if it does not. Such a server needs its own consent. */
export function findUncheckedCode({
  mode,
  command,
  env,
}: Pick<McpServer, 'mode' | 'command' | 'env'>): readonly string[] {
  return mode === 'local' ? listUncheckedReasons(commandDangers(command, env)) : [];
}

/**
 * The text whose SHA-256 a consent is bound to: canonical JSON of mode, command, env, version and isolation, and of whether
 * the server runs unchecked code (so a consent to the same server as a checked one does not count). Plain values of env are
 * included, because a value can be code (NODE_OPTIONS). References are included as they are, so that storing another
 * credential needs no new consent. Fields that do not change what runs (name, description, tools) are left out.
 */
export function consentText(server: ConsentSubject): string {
  const { mode, command, env, version, isolation } = server;
  const isUnchecked = findUncheckedCode(server).length > 0;
  const what = { mode, command: toWellFormedList(command), env: toWellFormedRecord(env), version, isolation };
  return canonicalJson(isUnchecked ? { ...what, unchecked: true } : what);
}

/** A lone surrogate, which canonical JSON cannot contain, is kept distinct from the character that programs read it as. */
function toWellFormedList(texts: readonly string[]): readonly string[] {
  return texts.map((text) => (/\p{Cs}/u.test(text) ? `\u0000${JSON.stringify(text)}` : text));
}

function toWellFormedRecord(record: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const names = toWellFormedList(Object.keys(record));
  const values = toWellFormedList(Object.values(record));
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));
}
