import { byteTextOf } from '../byte_text.ts';

/** A case of AWS's published signing test suite, which has the same form for versions 4 and 4a. */
export interface SigningVector {
  readonly 'context.json': {
    readonly credentials: SigningCredentials;
    readonly normalize: boolean;
    readonly omit_session_token?: boolean;
    readonly sign_body: boolean;
    readonly region: string;
    readonly service: string;
    readonly timestamp: string;
  };
  readonly 'request.txt': string;
  readonly 'header-signed-request.txt': string;
  readonly 'query-signed-request.txt': string;
}

export interface SigningCredentials {
  readonly access_key_id: string;
  readonly secret_access_key: string;
  readonly token?: string;
}

/** The context of the suite's simplest cases. */
export const EXAMPLE_CONTEXT: SigningVector['context.json'] = {
  credentials: { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' },
  normalize: true,
  sign_body: false,
  region: 'us-east-1',
  service: 'service',
  timestamp: '2015-08-30T12:36:00Z',
};

/** A request as the suite writes it, as latin1 text. */
interface Message {
  readonly method: string;
  readonly target: string;
  readonly lines: readonly string[];
  readonly body: string;
}

export function readMessage(text: string): Message {
  const [head = '', body = ''] = text.split('\n\n', 2);
  const [start = '', ...lines] = head.split('\n').filter((line) => line !== '');
  const parts = /^(\S+) (.*) HTTP\/1\.1$/.exec(start);
  return { method: parts?.[1] ?? '', target: byteTextOf(parts?.[2] ?? ''), lines: lines.map(byteTextOf), body };
}

/** The suites of both versions, if the folder with the project's data is beside the checkout. */
export const SUITES_FILE = new URL('../../../../shared/data/aws-signing-vectors.json', import.meta.url);

interface Suite<V> {
  /** Those that can be requests here. */
  readonly vectors: readonly (readonly [name: string, vector: V])[];
  /** For the name of a test: whether the data is there. */
  readonly state: string;
  /** Whether the data is absent, or holds what it should. */
  readonly isAsExpected: boolean;
}

const LEAST = 25;

/** The whole suite of a version, from the text of {@link SUITES_FILE}; null: there is no such file. */
export function readSuite<V extends SigningVector>(version: 'v4' | 'v4a', text: string | null): Suite<V> {
  if (text === null) {
    const state = 'is absent: there is no ../shared/data/aws-signing-vectors.json beside this checkout';
    return { vectors: [], state, isAsExpected: true };
  }
  const suites: Readonly<Record<typeof version, Readonly<Record<string, V>>>> = JSON.parse(text);
  const vectors = Object.entries(suites[version]).filter(isReachable);
  const state = `holds at least ${LEAST} cases that can be requests here`;
  return { vectors, state, isAsExpected: vectors.length >= LEAST };
}

/**
 * Not those that cannot be valid HTTP/1.1 requests here: a folded header, and paths signed raw for a service other than S3. Two
 * cases of version 4a have no signed request.
 */
function isReachable([name, vector]: readonly [string, SigningVector]): boolean {
  const { normalize, omit_session_token } = vector['context.json'];
  const isWhole = 'query-signed-request.txt' in vector && 'header-signed-request.txt' in vector;
  return name !== 'get-header-value-multiline' && isWhole && normalize && omit_session_token !== true;
}
