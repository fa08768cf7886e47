import { Buffer } from 'node:buffer';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HostBinding, Injection } from '../model/host_binding.ts';
import { Secret } from '../model/secret.ts';
import { inject } from './inject.ts';
import { findPresentedCredential } from './find_presented.ts';
import { linesOf, schemeBinding, sampleRequest } from './testing/sample_requests.ts';
import { WebHash } from './web_hash.ts';

const BEARER: Injection = { scheme: 'bearer' };
const BASIC: Injection = { scheme: 'basic', username: 'x-access-token' };
const TEMPLATE: Injection = { scheme: 'header-template', header: 'X-Api-Key', template: 'Key {token}; v=1' };
const SENTINEL = 'svc_sentinel_0001';

function swap(injection: Injection): HostBinding {
  return schemeBinding(injection, { mechanism: 'sentinel-swap', sentinel: SENTINEL });
}

function resultOf(binding: HostBinding, lines: readonly string[], credential: string) {
  const result = inject({
    binding,
    request: sampleRequest('/v1?q=1', lines),
    credential: new Secret(credential),
    body: { kind: 'none' },
    now: new Date(0),
    hash: WebHash,
  });
  if (result instanceof Promise) throw new Error('this scheme answers at once');
  return result;
}

/** The outgoing header lines, or the refusal's reason. */
function injectLines(
  binding: HostBinding,
  lines: readonly string[],
  credential = 'REAL-SECRET',
): readonly string[] | string {
  const result = resultOf(binding, lines, credential);
  return result.ok ? linesOf(result.value) : result.error.reason;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

const PLACES: readonly (readonly [injection: Injection, header: string, written: string])[] = [
  [BEARER, 'Authorization', 'Authorization: Bearer REAL-SECRET'],
  [BASIC, 'Authorization', `Authorization: Basic ${base64('x-access-token:REAL-SECRET')}`],
  [TEMPLATE, 'X-Api-Key', 'X-Api-Key: Key REAL-SECRET; v=1'],
];

describe('inject: injected wins', () => {
  for (const [injection, header, written] of PLACES) {
    const binding = schemeBinding(injection);
    const odd = header.toUpperCase().replace('A', 'a');

    it(`${injection.scheme}: writes the credential if the client sent none`, () => {
      expect(injectLines(binding, ['Accept: */*'])).toEqual(['Accept: */*', written]);
    });

    it(`${injection.scheme}: removes every copy of the client's value, in any case`, () => {
      const lines = [`${header}: mine`, 'Accept: */*', `${odd}:   also mine`, `${header.toLowerCase()}:`, 'X-Last: 1'];
      expect(injectLines(binding, lines)).toEqual(['Accept: */*', 'X-Last: 1', written]);
    });

    it(`${injection.scheme}: refuses a request whose Connection header would drop the credential`, () => {
      expect(injectLines(binding, [`Connection: upgrade, ${odd}`])).toBe('invalid_request');
      expect(injectLines(binding, ['Connection: upgrade'])).toEqual(['Connection: upgrade', written]);
    });

    it(`${injection.scheme}: leaves all other header lines unchanged, in order`, () => {
      const anyLine = fc.constantFrom(
        'Cookie: session=abc',
        'x-b:',
        'X-B:  2 ',
        'X-AUTHORIZATION: x',
        'Proxy-Status: a',
        'X-Api-Key2: k',
      );
      fc.assert(
        fc.property(fc.array(anyLine, { maxLength: 8 }), (lines) => {
          expect(injectLines(binding, lines)).toEqual([...lines, written]);
        }),
      );
    });

    it(`${injection.scheme}: leaves credentials in other places alone`, () => {
      const lines = ['Cookie: api_key=mine; token=mine', 'X-Other-Token: mine'];
      expect(injectLines(binding, lines)).toEqual([...lines, written]);
    });
  }

  it('removes every name that CGI, WSGI or PHP maps to the same variable', () => {
    const binding = schemeBinding(TEMPLATE);
    const spelled = fc
      .tuple(fc.constantFrom('-', '_', '.', '!', '~'), fc.constantFrom('-', '_', '.', '|', '+'), fc.boolean())
      .map(([one, other, upper]) => (upper ? `X${one}API${other}KEY` : `x${one}api${other}Key`));
    fc.assert(
      fc.property(fc.array(spelled, { minLength: 1, maxLength: 4 }), (names) => {
        const lines = ['A: 1', ...names.map((name) => `${name}: mine`), 'XApiKey: kept'];
        expect(injectLines(binding, lines)).toEqual(['A: 1', 'XApiKey: kept', 'X-Api-Key: Key REAL-SECRET; v=1']);
      }),
    );
  });

  it('writes a Basic pair as UTF-8', () => {
    const binding = schemeBinding({ scheme: 'basic', username: 'm\u00fcller' });
    expect(injectLines(binding, [], 'p\u00e4ss:w\u{1F600}')).toEqual([
      `Authorization: Basic ${base64('m\u00fcller:p\u00e4ss:w\u{1F600}')}`,
    ]);
  });

  it('sends a credential outside ASCII as UTF-8 bytes', () => {
    expect(injectLines(schemeBinding(BEARER), [], 't\u00f6ken')).toEqual(['Authorization: Bearer t\u00c3\u00b6ken']);
  });

  it('treats "$&" and "{token}" within a credential as plain text', () => {
    const line = 'X-Api-Key: Key $&{token}$1; v=1';
    expect(injectLines(schemeBinding(TEMPLATE), [], '$&{token}$1')).toEqual([line]);
  });
});

describe('inject: a stored value that cannot be sent', () => {
  const schemes: readonly Injection[] = [
    ...PLACES.map(([injection]) => injection),
    { scheme: 'query-param', queryParam: 'k' },
  ];
  for (const injection of schemes) {
    it(`${injection.scheme}: refuses line breaks and control characters without quoting the value`, () => {
      for (const bad of ['\r', '\n', '\r\nX-Evil: 1', '\0', '\u007f', '\u0085', '\t']) {
        const result = resultOf(schemeBinding(injection), [], `TOPSECRET${bad}`);
        expect(result).toMatchObject({ ok: false, error: { reason: 'credential_unavailable' } });
        expect(JSON.stringify(result)).not.toContain('TOPSECRET');
        expect(JSON.stringify(result)).toContain('store the value again');
      }
    });

    it(`${injection.scheme}: refuses an empty value`, () => {
      expect(injectLines(schemeBinding(injection), [], '')).toBe('credential_unavailable');
    });
  }
});

describe('sentinel-swap', () => {
  const presented: readonly (readonly [injection: Injection, sent: string, written: string])[] = [
    [BEARER, `AuthoriZation:  bearer ${SENTINEL} `, 'AuthoriZation: Bearer REAL-SECRET'],
    [BEARER, `authorization: token ${SENTINEL}`, 'authorization: Bearer REAL-SECRET'],
    [
      BASIC,
      `Authorization: basic ${base64(`git user:${SENTINEL}`)}`,
      `Authorization: Basic ${base64('git user:REAL-SECRET')}`,
    ],
    [TEMPLATE, `x-api-key: Key ${SENTINEL}; v=1`, 'x-api-key: Key REAL-SECRET; v=1'],
  ];
  for (const [injection, sent, written] of presented) {
    it(`${injection.scheme}: swaps "${sent.split(' ')[0]}" in place, keeping the spelling of its name`, () => {
      const lines = ['A: 1', sent, 'B: 2'];
      expect(findPresentedCredential(swap(injection), sampleRequest('/', lines))).toBe('sentinel');
      expect(injectLines(swap(injection), lines)).toEqual(['A: 1', written, 'B: 2']);
    });

    it(`${injection.scheme}: writes one copy if the client sends the sentinel twice (${sent.length})`, () => {
      expect(injectLines(swap(injection), [sent, 'B: 2', sent])).toEqual([written, 'B: 2']);
    });

    it(`${injection.scheme}: treats a sentinel beside a foreign credential as foreign (${sent.length})`, () => {
      const name = sent.split(':')[0];
      for (const lines of [
        [sent, `${name}: mine`],
        [`${name}: mine`, sent],
      ]) {
        expect(findPresentedCredential(swap(injection), sampleRequest('/', lines))).toBe('foreign');
      }
    });
  }

  for (const [injection, header, written] of PLACES) {
    it(`${injection.scheme}: injects if nothing is in the place`, () => {
      expect(findPresentedCredential(swap(injection), sampleRequest('/'))).toBe('absent');
      expect(injectLines(swap(injection), ['Accept: */*'])).toEqual(['Accept: */*', written]);
    });

    it(`${injection.scheme}: leaves a sentinel outside its place inert`, () => {
      const lines = [`Cookie: a=${SENTINEL}`, `X-Note: Bearer ${SENTINEL}`, `Referer: https://a.test/?q=${SENTINEL}`];
      expect(findPresentedCredential(swap(injection), sampleRequest(`/?a=${SENTINEL}`, lines))).toBe('absent');
      expect(injectLines(swap(injection), lines)).toEqual([...lines, written]);
    });

    it(`${injection.scheme}: reports a value that only contains the sentinel as foreign`, () => {
      for (const value of [`Bearer ${SENTINEL}x`, `Bearer x${SENTINEL}`, `Bearer ${SENTINEL}, Bearer b`, '']) {
        expect(findPresentedCredential(swap(injection), sampleRequest('/', [`${header}: ${value}`]))).toBe('foreign');
      }
    });
  }

  it('treats another spelling of the header as the place: swapped, removed or foreign', () => {
    const value = `Key ${SENTINEL}; v=1`;
    const written = 'X-Api-Key: Key REAL-SECRET; v=1';
    const cases: readonly (readonly [lines: readonly string[], sent: readonly string[]])[] = [
      [
        [`X_Api_Key: ${value}`, 'B: 2'],
        ['B: 2', written],
      ],
      [[`X_Api_Key: ${value}`, `X-Api-Key: ${value}`], [written]],
    ];
    for (const [lines, sent] of cases) {
      expect(findPresentedCredential(swap(TEMPLATE), sampleRequest('/', lines))).toBe('sentinel');
      expect(injectLines(swap(TEMPLATE), lines)).toEqual(sent);
    }
    for (const lines of [[`X-Api-Key: ${value}`, 'x_api_key: mine'], ['X.Api_Key: mine']]) {
      expect(findPresentedCredential(swap(TEMPLATE), sampleRequest('/', lines))).toBe('foreign');
    }
  });

  it('basic: leaves a sentinel sent as the user name inert, because servers show user names', () => {
    const lines = [`Authorization: Basic ${base64(`${SENTINEL}:x`)}`];
    expect(findPresentedCredential(swap(BASIC), sampleRequest('/', lines))).toBe('foreign');
  });

  it('basic: treats a payload that is not base64 as foreign', () => {
    for (const value of ['Basic', 'Basic ===', 'Basic a b', `Basic ${SENTINEL}`, `Basic ${base64('nocolon')}`]) {
      expect(findPresentedCredential(swap(BASIC), sampleRequest('/', [`Authorization: ${value}`]))).toBe('foreign');
    }
  });

  it('basic: keeps a user name outside ASCII', () => {
    const lines = [`Authorization: Basic ${base64(`m\u00fcller:${SENTINEL}`)}`];
    expect(injectLines(swap(BASIC), lines)).toEqual([`Authorization: Basic ${base64('m\u00fcller:REAL-SECRET')}`]);
  });

  it('with inject, reports only whether the client sent something', () => {
    const binding = schemeBinding(BEARER);
    expect(findPresentedCredential(binding, sampleRequest('/', [`Authorization: Bearer ${SENTINEL}`]))).toBe('foreign');
    expect(findPresentedCredential(binding, sampleRequest('/'))).toBe('absent');
  });
});
