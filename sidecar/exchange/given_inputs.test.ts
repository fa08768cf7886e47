import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { givenInputs } from './given_inputs.ts';

const AUDITED = sampleOperation({
  audit: [
    { name: 'q', source: 'query.q', redact: true },
    { name: 'title', source: 'body.title', redact: true },
  ],
});
const bytes = (text: string): Uint8Array[] => [Buffer.from(text.slice(0, 3)), Buffer.from(text.slice(3))];

test('names of the query and members of a JSON object are given, values are not looked at', () => {
  expect([...givenInputs(AUDITED, 'q=1&%74ags=2&q', bytes('{"title":{"a":1},"x":null}'))]).toEqual([
    'query.q',
    'query.tags',
    'body.title',
    'body.x',
  ]);
});

test.each(['not json', '[1', '"text"', 'null', ''])('a body that is no JSON object gives nothing: %j', (body) => {
  expect([...givenInputs(AUDITED, null, bytes(body))]).toEqual([]);
});

test('names with escapes and outside ASCII are those that a server reads', () => {
  expect([...givenInputs(AUDITED, null, bytes('{"t\\u0069tle":1,"mün":2,"a\\"b":3,"\\x":4}'))]).toEqual([
    'body.title',
    'body.mün',
    'body.a"b',
  ]);
});

test('nothing is read for an operation that audits neither', () => {
  expect(givenInputs(sampleOperation(), 'q=1', bytes('{"title":1}')).size).toBe(0);
});

test('any query and body can be read (property)', () => {
  fc.assert(
    fc.property(fc.string(), fc.uint8Array(), (query, body) => {
      expect(() => givenInputs(AUDITED, query, [body])).not.toThrow();
    }),
  );
});
