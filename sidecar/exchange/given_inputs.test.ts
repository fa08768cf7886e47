import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { listGivenInputs } from './given_inputs.ts';

const AUDITED = sampleOperation({
  audit: [
    { name: 'q', source: 'query.q', redact: true },
    { name: 'title', source: 'body.title', redact: true },
  ],
});
const bytes = (text: string): Uint8Array[] => [Buffer.from(text.slice(0, 3)), Buffer.from(text.slice(3))];

test('lists names in the query and members of a JSON object, and never looks at values', () => {
  expect([...listGivenInputs(AUDITED, 'q=1&%74ags=2&q', bytes('{"title":{"a":1},"x":null}'))]).toEqual([
    'query.q',
    'query.tags',
    'body.title',
    'body.x',
  ]);
});

test.each(['not json', '[1', '"text"', 'null', ''])(
  'lists nothing for a body that is not a JSON object: %j',
  (body) => {
    expect([...listGivenInputs(AUDITED, null, bytes(body))]).toEqual([]);
  },
);

test('decodes escaped and non-ASCII names as a server does', () => {
  expect([...listGivenInputs(AUDITED, null, bytes('{"t\\u0069tle":1,"mün":2,"a\\"b":3,"\\x":4}'))]).toEqual([
    'body.title',
    'body.mün',
    'body.a"b',
  ]);
});

test('reads nothing for an operation that audits neither', () => {
  expect(listGivenInputs(sampleOperation(), 'q=1', bytes('{"title":1}')).size).toBe(0);
});

test('reads any query and body (property)', () => {
  fc.assert(
    fc.property(fc.string(), fc.uint8Array(), (query, body) => {
      expect(() => listGivenInputs(AUDITED, query, [body])).not.toThrow();
    }),
  );
});
