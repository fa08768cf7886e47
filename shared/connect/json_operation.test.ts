import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonRule } from '../model/connector.ts';
import type { ConnectorOperation } from './connector_index.ts';
import { jsonWords, recogniseJson } from './json_operation.ts';
import { sampleConnector, sampleOperation } from './testing/sample_connector.ts';

const small = operation('small', [
  { pointer: '/amount', atMost: 100 },
  { pointer: '/options/currency', equals: ['eur', 'usd'] },
]);
const large = operation('large', [{ pointer: '/amount', atLeast: 101 }]);
const other = operation('other');
const refund = candidatesOf(small, large, other);

function operation(name: string, json?: readonly JsonRule[]) {
  return sampleOperation({ name, method: 'POST', path: '/refunds', effect: 'write', ...(json && { json }) });
}

function candidatesOf(...operations: ReturnType<typeof operation>[]): ConnectorOperation[] {
  const connector = sampleConnector(operations);
  return operations.map((each) => ({ connector, operation: each }));
}

const bytes = (text: string): Uint8Array[] => [new TextEncoder().encode(text)];

/** The name of the operation, or the reason of the refusal. */
function decide(body: string | object, candidates: readonly ConnectorOperation[] = refund): string {
  const found = recogniseJson(candidates, bytes(typeof body === 'string' ? body : JSON.stringify(body)));
  return found.ok ? found.value.operation.name : found.error.reason;
}

describe('the operation of a JSON body', () => {
  test.each([
    [{ amount: 100, options: { currency: 'eur' } }, 'small'],
    [{ amount: 0.5, options: { currency: 'usd', more: [1] }, note: 'x' }, 'small'],
    [{ amount: 100, options: { currency: 'gbp' } }, 'other'],
    [{ amount: 100.5, options: { currency: 'eur' } }, 'other'],
    [{ amount: 101 }, 'large'],
    [{ amount: 101, options: { currency: 'eur' } }, 'large'],
    [{ amount: null, options: null }, 'other'],
    [{}, 'other'],
    ['', 'other'],
    ['{"amount": 1e2, "options": {"currency": "eur"}}', 'small'],
  ])('%# is that whose rules all hold, otherwise the one without rules', (body, name) => {
    expect(decide(body)).toBe(name);
  });

  test.each([
    ['another letter case', { amount: 1, Amount: 1000 }],
    ['a compatibility form', { amount: 1, ａmount: 1000 }],
    ['a long s, which Go folds', { options: { currency: 'eur' }, optionſ: {} }],
    ['a dotless i, which has the same capital', { options: {}, optıons: {} }],
    ['a separator', { amount: 1, _amount: 1000 }],
    ['a blank', { amount: 1, 'amount ': 1000 }],
    ['an invisible character', { amount: 1, 'am\u200bount': 1000 }],
    ['half a surrogate pair', '{"amount":1,"amount\\ud800":1000}'],
    ['a NUL that ends a string in C', { amount: 1, 'amount\u0000x': 1000 }],
    ['a name with its path', { options: {}, 'options.currency': 'gbp' }],
    ['a name with its path in brackets', { 'options[currency]': 'gbp' }],
    ['a name that is only a look-alike', { AMOUNT: 1000 }],
    ['a nested look-alike', { options: { currency: 'eur', Currency: 'gbp' } }],
    ['a member twice', '{"amount":1,"amount":1000}'],
    ['a member twice, once escaped', '{"amount":1,"\\u0061mount":1000}'],
    ['a text for a number', { amount: '1000' }],
    ['a list for a number', { amount: [1000] }],
    ['an object for a number', { amount: { value: 1000 } }],
    ['true for a number', { amount: true }],
    ['a list for an object', { options: [{ currency: 'eur' }] }],
    ['a text for an object', { options: 'eur' }],
    ['a list for a text', { options: { currency: ['eur'] } }],
    ['a word in another letter case', { options: { currency: 'EUR' } }],
    ['a word with a blank', { options: { currency: 'eur ' } }],
    ['a word with a NUL', { options: { currency: 'gbp\u0000eur' } }],
    ['a number beyond those that all servers read', { amount: 2 ** 53 }],
    ['an endless number', '{"amount":1e999}'],
    ['a list', [{ amount: 1 }]],
    ['a text', '"amount"'],
    ['null', 'null'],
    ['no JSON', 'amount=1'],
    ['a byte order mark', '\uFEFF{"amount":1}'],
    ['a comment', '{"amount":1/*,"amount":1000*/}'],
    ['two values', '{"amount":1}{"amount":1000}'],
  ])('is unreadable with %s', (_what, body) => {
    expect(decide(body)).toBe('json_unreadable');
  });

  test('is unreadable if it is not UTF-8', () => {
    const found = recogniseJson(refund, [...bytes('{"note":"'), Uint8Array.of(0xff), ...bytes('"}')]);
    expect(found).toMatchObject({ ok: false, error: { reason: 'json_unreadable' } });
  });

  test('has whole numbers where an operation lists such, because a server may round', () => {
    const candidates = candidatesOf(operation('level', [{ pointer: '/level', equals: [1, 2] }]), other);
    expect([decide({ level: 2 }, candidates), decide({ level: 3 }, candidates)]).toEqual(['level', 'other']);
    expect(decide({ level: 2.4 }, candidates)).toBe('json_unreadable');
  });

  test('has the type of a rule: neither a text nor a number stands for true', () => {
    const forced = candidatesOf(operation('forced', [{ pointer: '/force', equals: [true] }]), other);
    expect([decide({ force: true }, forced), decide({ force: false }, forced), decide({}, forced)]).toEqual([
      'forced',
      'other',
      'other',
    ]);
    for (const force of ['true', 1, 'on']) expect(decide({ force }, forced)).toBe('json_unreadable');
  });

  test('is refused if no operation has it, or several do', () => {
    expect(decide({ amount: 1 }, candidatesOf(small))).toBe('json_operation_not_allowed');
    const twice = candidatesOf(large, operation('huge', [{ pointer: '/amount', atLeast: 1000 }]));
    expect([decide({ amount: 500 }, twice), decide({ amount: 5000 }, twice)]).toEqual([
      'large',
      'json_operation_not_allowed',
    ]);
    const ofAnother = { connector: sampleConnector([other], { fqn: 'acme/other' }), operation: other };
    expect(decide({ amount: 500 }, [...refund, ofAnother])).toBe('json_operation_not_allowed');
  });

  test('is refused with the places and the operations, and without a value of the body', () => {
    const secret = 'planted-secret-0123456789';
    const messages = [{ amount: secret }, { [secret]: 1, Amount: secret }, { options: { currency: secret } }].map(
      (body) => {
        const found = recogniseJson(candidatesOf(small, large), bytes(JSON.stringify(body)));
        return found.ok ? '' : found.error.message;
      },
    );
    expect(messages).toEqual([
      'the request is refused: its body has no number at /amount',
      'the request is refused: its body has a member that servers may read as /amount or /options: leave it out',
      'the request is refused: no operation of a connector has the values that its body has at /amount, /options/currency',
    ]);
  });

  test('is the same for every order and spacing of its members, and with any other members beside', () => {
    const name = fc.string({ maxLength: 8 }).filter((each) => !/am|op|[^ -~]/i.test(each));
    fc.assert(
      fc.property(
        fc.integer({ min: -5, max: 300 }),
        fc.dictionary(name, fc.jsonValue()),
        fc.boolean(),
        (amount, more, last) => {
          const body = last ? { ...more, amount } : { amount, ...more };
          const expected = amount > 100 ? 'large' : 'other';
          expect(decide(JSON.stringify(body, null, last ? 2 : 0))).toBe(expected);
        },
      ),
    );
  });

  test('is decided among many members and deep rules', () => {
    const rules = Array.from({ length: 20 }, (_each, at) => ({ pointer: `/a${at}/b/c/d/e`, equals: ['x'] }));
    const members = Object.fromEntries(Array.from({ length: 50_000 }, (_each, at) => [`member${at}`, at]));
    expect(decide(members, candidatesOf(operation('deep', rules), other))).toBe('other');
  });
});

test('rules are told in words', () => {
  expect(jsonWords(small.json)).toBe('/amount at most 100, /options/currency "eur" or "usd"');
  expect(jsonWords([{ pointer: '/a', atLeast: 1, atMost: 2 }])).toBe('/a 1 to 2');
  expect([jsonWords(large.json), jsonWords(undefined)]).toEqual(['/amount at least 101', 'any other body']);
});
