import { z } from 'zod';
import { CHOSEN_BY, MAX_CHOSEN_SECRETS } from '../model/account_choice.ts';
import { parseBindingReference, parseSentReference, parseVaultReference } from '../model/vault_path.ts';
import { normaliseHostOnPort } from '../net/host.ts';
import { formatHostPattern, parseHostPattern } from '../net/host_pattern.ts';
import { checkedText, type TextCheck } from './checked_text.ts';
import { envNameProblem, headerNameProblem, queryParamProblem, templateProblem } from './injection_fields.ts';
import { didYouMean } from '../model/near_match.ts';
import { placeholderProblem } from './placeholder.ts';
import { line, lineProblem } from './primitives.ts';

export const MAX_ALLOWED_HOSTS = 100;
const MIN_SENTINEL_CHARACTERS = 16;

/** The values of secret-bearing fields are never quoted, because people paste the secret itself there. */
interface TextRules {
  readonly maxCharacters: number;
  /** What to write if the field is missing or not a text. */
  readonly fix: string;
  readonly problem: TextCheck;
}

export const hostPatternText = textField({
  maxCharacters: 261,
  fix: 'write the host the credential is for, such as api.example.com or *.example.com',
  problem: (text) => {
    const pattern = parseHostPattern(text);
    return pattern.ok ? null : pattern.error.message;
  },
}).overwrite(canonicalPattern);

export const allowedHostText = textField({
  maxCharacters: 260,
  fix: 'write a host such as api.example.com',
  problem: (text) => {
    const host = normaliseHostOnPort(text);
    if (host.ok) return null;
    return text.includes('*') ? 'has a "*" in it: allowed hosts are exact, list each of them' : host.error.message;
  },
}).overwrite(canonicalAllowedHost);

export const credentialRefText = textField({
  maxCharacters: 264,
  fix: 'write a reference to a stored secret, such as vault://user/demo',
  problem: (text) => {
    const path = parseVaultReference(text);
    return path.ok ? null : path.error.message;
  },
});

/** In order: the secrets that a session uses where a host is bound to several, and who chose each. */
export const chosenSecrets = z
  .array(
    z.strictObject({ reference: credentialRefText, by: z.enum(CHOSEN_BY), from: line(4096).nullable().default(null) }),
  )
  .max(MAX_CHOSEN_SECRETS);

/** Of a binding, which may also refer to the login of a program. */
export const bindingCredentialText = textField({
  maxCharacters: 264,
  fix: 'write a reference to a stored secret, such as vault://user/demo',
  problem: (text) => {
    const path = parseBindingReference(text);
    return path.ok ? null : path.error.message;
  },
});

/** Of a binding that the control plane sends, which another person may share. */
export const sentCredentialText = textField({
  maxCharacters: 264,
  fix: 'write a reference to a stored secret, such as vault://user/demo',
  problem: (text) => {
    const path = parseSentReference(text);
    return path.ok ? null : path.error.message;
  },
});

export const usernameText = textField({
  maxCharacters: 256,
  fix: 'write the user name that goes before the ":" of Basic authentication ("" for none)',
  problem: (text) => {
    if (text.includes(':')) return 'contains a ":", which ends the user name in Basic authentication: remove it';
    return controlProblem(text);
  },
});

export const headerText = textField({
  maxCharacters: 128,
  fix: 'write the name of the header, such as X-Api-Key',
  problem: headerNameProblem,
});

export const templateText = textField({
  maxCharacters: 1024,
  fix: 'write the header value with {token} where the credential goes',
  problem: templateProblem,
});

export const queryParamText = textField({
  maxCharacters: 128,
  fix: 'write the name of the query-string parameter, such as api_key',
  problem: queryParamProblem,
});

export const accessKeyIdText = textField({
  maxCharacters: 128,
  fix: 'write the access key id (it is not secret), such as AKIAIOSFODNN7EXAMPLE',
  problem: (text) => (/^[!-~]+$/.test(text) && !/[/,;="\\]/.test(text) ? null : 'is not an access key id: check it'),
});

const REGION = 'the region the signature is for, such as eu-central-1';
/** One region. */
export const regionText = sigv4ScopeField(REGION);
/** One region, or a set of them for Signature Version 4a. */
export const regionSetText = textField({
  maxCharacters: 256,
  fix: `write ${REGION}, or a set for Signature Version 4a, such as * or us-east-1,eu-*`,
  problem: (text) =>
    text.split(',').every((region) => /^(?:[A-Za-z0-9_-]+\*?|\*)$/.test(region))
      ? null
      : `has a character or a place that none has: write ${REGION}, or a set such as us-east-1,eu-*`,
});
export const serviceText = sigv4ScopeField('the service the signature is for, such as s3');

export const sentinelValueText = textField({
  maxCharacters: 1024,
  fix: `write a placeholder of at least ${MIN_SENTINEL_CHARACTERS} characters that looks like the credential but is not one`,
  problem: (text) => {
    if (text.length < MIN_SENTINEL_CHARACTERS) {
      return `is shorter than ${MIN_SENTINEL_CHARACTERS} characters: a short one could occur in a request by chance`;
    }
    return /^[!-~]+$/.test(text) ? null : 'contains a space or a character that is not printable ASCII: remove it';
  },
});

export const sentinelEnvText = textField({
  maxCharacters: 128,
  fix: 'write the name of the environment variable that hands the sentinel to the agent',
  problem: envNameProblem,
});

export const descriptionText = textField({
  maxCharacters: 500,
  fix: 'write one line of text',
  problem: lineProblem,
});

const MOST_REQUESTS = 1_000_000;

/** How many requests may get the credential in a span of time. */
export const requestLimit = z
  .int({ error: `must be a whole number from 1 to ${MOST_REQUESTS}` })
  .min(1, { error: 'must be at least 1' })
  .max(MOST_REQUESTS, { error: `must be at most ${MOST_REQUESTS}: leave it out for no limit` });

/** So that counts of bytes, which a limit may be exceeded by, stay exact. */
const MOST_BYTES = 1_000_000_000_000_000;

/** How many bytes requests with the credential and their replies may have in a day. */
export const byteLimit = z
  .int({ error: 'must be a whole number of bytes, or a size such as 500MB or 2GiB' })
  .min(1, { error: 'must be at least 1' })
  .max(MOST_BYTES, { error: `must be at most ${MOST_BYTES}: leave it out for no limit` });

/** One of a closed set. */
export function oneOfValues<const T extends readonly string[]>(values: T) {
  const list = values.join(', ');
  return z.enum(values, {
    error: ({ input }) => {
      if (input === undefined) return `is missing: write one of ${list}`;
      if (typeof input !== 'string') return `must be one of ${list}`;
      return `is ${JSON.stringify(input.slice(0, 40))}, which is none of ${list}${didYouMean(input, values)}`;
    },
  });
}

function textField({ maxCharacters, fix, problem }: TextRules): z.ZodString {
  return checkedText(maxCharacters, fix, (text) => placeholderProblem(text) ?? problem(text));
}

function sigv4ScopeField(what: string): z.ZodString {
  return textField({
    maxCharacters: 64,
    fix: `write ${what}`,
    problem: (text) => (/^[A-Za-z0-9_-]+$/.test(text) ? null : `has a character that none has: write ${what}`),
  });
}

function controlProblem(text: string): string | null {
  return /\p{Cc}/u.test(text) ? 'contains a line break or another control character: remove it' : null;
}

/** An invalid pattern stays unchanged: it has its own issue. */
function canonicalPattern(text: string): string {
  const pattern = parseHostPattern(text);
  return pattern.ok ? formatHostPattern(pattern.value) : text;
}

function canonicalAllowedHost(text: string): string {
  const host = normaliseHostOnPort(text);
  return host.ok ? host.value : text;
}
