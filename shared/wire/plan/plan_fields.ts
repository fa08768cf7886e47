import { z } from 'zod';
import {
  DEFAULT_STEP_TIMEOUT_SECONDS,
  MAX_COMMAND_BYTES,
  MAX_COMMAND_WORDS,
  MAX_STEP_SCOPES,
  MAX_STEP_TIMEOUT_SECONDS,
} from '../../model/plan.ts';
import { parseVaultReference } from '../../model/vault_path.ts';
import { normaliseHostOnPort } from '../../net/host.ts';
import { nameOfHost } from '../../net/host_port.ts';
import { isIpLiteral } from '../../net/ip_literal.ts';
import { checkedText } from '../checked_text.ts';
import { parseScopes } from '../sources/narrowing.ts';
import { placeholderProblem } from '../placeholder.ts';
import { lineProblem } from '../primitives.ts';

const MAX_PATH_CHARACTERS = 1024;
const WHOLE_SECONDS = `write a whole number of seconds from 1 to ${MAX_STEP_TIMEOUT_SECONDS}`;

export const planNameText = nameField('write a name for the plan, such as nightly-report');

export const stepIdText = nameField('write a unique id for each step, such as fetch-items');

export const imageText = checkedText(255, 'write the image the plan runs in, such as agent-tools:1', (text) => {
  if (text === '') return 'is empty: write the image the plan runs in, such as agent-tools:1';
  if (/^[A-Za-z0-9][A-Za-z0-9._/:@-]*$/.test(text)) return placeholderProblem(text);
  return 'is not an image name: write one such as agent-tools:1 or registry.example.com/team/tools@sha256:...';
});

/** A host of the sealed reach as written by people: exact, on port 443 if it names no other, never an address. */
export const reachHostText = reachHost().overwrite(canonicalReachHost);

/** The same in a lock: the canonical host itself. Our locks contain no port 443 and no other spelling. */
export const sealedHostText = reachHost().refine((host) => canonicalReachHost(host) === host, {
  error: 'is not in its canonical form',
});

export const planCredentialText = checkedText(
  264,
  'write a reference to a stored secret, such as vault://user/demo',
  (text) => {
    const path = parseVaultReference(text);
    return path.ok ? null : path.error.message;
  },
);

/** What a step does less with minted secrets: texts as `--scope` takes them. */
export const stepScopeTexts = z
  .array(z.string({ error: 'must be a text, such as vault://ci/github:repositories=website' }).max(4_096), {
    error: 'must be a list of scopes, such as ["vault://ci/github:repositories=website"]',
  })
  .min(1, { error: 'is empty: name what the step does less, or leave scopes out' })
  .max(MAX_STEP_SCOPES, { error: `has more than ${MAX_STEP_SCOPES} entries` })
  .superRefine((texts, context) => {
    const scopes = parseScopes(texts);
    if (!scopes.ok) context.addIssue({ code: 'custom', message: scopes.error.message });
  });

export const mountSourceText = checkedText(
  MAX_PATH_CHARACTERS,
  'write a path on this machine, relative to the plan or absolute',
  (text) => {
    if (text === '') return 'is empty: write a path on this machine, such as ./data';
    if (text.startsWith('~')) return 'begins with "~", which only a shell reads: write the path in full';
    return pathCharacterProblem(text) ?? placeholderProblem(text);
  },
);

export const containerPathText = checkedText(
  MAX_PATH_CHARACTERS,
  'write an absolute path in the container, such as /home/agent/report',
  (text) => {
    if (!text.startsWith('/')) return 'is not an absolute path: write one that begins with "/"';
    if (text === '/') return 'is the whole container: name a folder or file in it';
    if (/\/\/|\/$|\/\.{1,2}(\/|$)/.test(text)) return 'has an empty, "." or ".." part: write the plain path';
    return pathCharacterProblem(text);
  },
);

export const collectNameText = checkedText(128, 'write a file name, such as report.json', (text) => {
  if (/^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(text)) return null;
  return 'is not a plain file name: use letters, digits, ".", "_" and "-", not beginning with "." or "-"';
});

/** The program and its arguments. A single text is refused: it would need a shell to split it, and none is used. */
export const commandWords = z
  .array(z.string({ error: commandWordProblem }), { error: commandProblem })
  .min(1, { error: 'is empty: write the program and its arguments, such as ["curl", "https://api.example.com/"]' })
  .max(MAX_COMMAND_WORDS, { error: `has more than ${MAX_COMMAND_WORDS} words: put them into a script of the image` })
  .superRefine((words, context) => {
    const problem = wordsProblem(words);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  });

export const timeoutSecondsNumber = z
  .int({ error: `must be a whole number: ${WHOLE_SECONDS}` })
  .min(1, { error: `is below 1: ${WHOLE_SECONDS}` })
  .max(MAX_STEP_TIMEOUT_SECONDS, { error: `is above ${MAX_STEP_TIMEOUT_SECONDS}: ${WHOLE_SECONDS}` })
  .default(DEFAULT_STEP_TIMEOUT_SECONDS);

function commandProblem({ input }: { readonly input?: unknown }): string {
  if (input === undefined) return 'is missing: write the program and its arguments, such as ["curl", "--version"]';
  if (typeof input !== 'string') return 'must be a list of words, such as ["curl", "--version"]';
  return 'is one text, and no shell splits it: write a list, such as ["curl", "--version"], or ["/bin/sh", "-c", "..."] if a shell is meant';
}

function commandWordProblem({ input }: { readonly input?: unknown }): string {
  const kind =
    input === null ? 'empty' : Array.isArray(input) || typeof input === 'object' ? 'no text' : `a ${typeof input}`;
  return `is ${kind}, and every word of a command is text: put it in quotes`;
}

function wordsProblem(words: readonly string[]): string | null {
  if (words[0] === '') return 'begins with an empty word: the first one is the program';
  if (words.some((word) => word.includes('\0'))) return 'contains a NUL in a word, which no program accepts: remove it';
  if (words.some((word) => /\p{Cs}/u.test(word))) return 'has a word that is not well-formed Unicode: write plain text';
  const encoder = new TextEncoder();
  const bytes = words.reduce((sum, word) => sum + encoder.encode(word).length + 1, 0);
  return bytes <= MAX_COMMAND_BYTES ? null : `has more than ${MAX_COMMAND_BYTES} bytes: put the script into the image`;
}

function reachHost(): z.ZodString {
  return checkedText(260, 'write a host such as api.example.com', reachHostProblem);
}

function reachHostProblem(text: string): string | null {
  if (text.includes('*')) {
    return 'has a "*" in it: a sealed reach has no patterns, list each host that the step needs';
  }
  const host = normaliseHostOnPort(text);
  if (!host.ok && host.error.reason === 'invalid_port') return host.error.message;
  if (host.ok ? isIpLiteral(nameOfHost(host.value)) : !text.includes('/') && isIpLiteral(text)) {
    return 'is an IP address: a sealed reach names hosts, write the host name';
  }
  return host.ok ? placeholderProblem(text) : host.error.message;
}

function canonicalReachHost(text: string): string {
  const host = normaliseHostOnPort(text);
  return host.ok ? host.value : text;
}

/** The engine's mount syntax would interpret a "," or ":". */
function pathCharacterProblem(text: string): string | null {
  if (/[,:"]/.test(text)) return 'contains a ",", ":" or quote, which a container engine would interpret: rename it';
  return lineProblem(text);
}

function nameField(fix: string): z.ZodString {
  return checkedText(63, fix, (text) => {
    if (text === '') return `is empty: ${fix}`;
    if (/^[a-z0-9][a-z0-9_-]*$/.test(text)) return null;
    return 'may have only a-z, 0-9, "_" and "-", and begins with a letter or digit';
  });
}
