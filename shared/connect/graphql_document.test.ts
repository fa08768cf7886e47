import { describe, expect, test } from 'vitest';
import { describeDocument, readGraphqlDocument } from './graphql_document.ts';

/** The type and the fields of a document, or what is wrong with it. */
function read(text: string, operationName: string | null = null): string {
  const document = readGraphqlDocument(text, operationName);
  return document.ok ? describeDocument(document.value) : `error: ${document.error}`;
}

describe('a document', () => {
  test.each([
    ['a query without its keyword', '{viewer{login}}', 'query viewer'],
    ['a mutation', 'mutation { mergePullRequest(input: {}) { clientMutationId } }', 'mutation mergePullRequest'],
    ['a subscription', 'subscription S { issueUpdated { id } }', 'subscription issueUpdated'],
    ['a field behind an alias', 'mutation { addComment: mergePullRequest { id } }', 'mutation mergePullRequest'],
    ['aliases of one field', 'mutation { a: merge b: merge c: add }', 'mutation merge (2 times), add'],
    ['an inline fragment', 'mutation { ... on Mutation { ... { merge } } add }', 'mutation add, merge'],
    ['a named fragment', 'mutation { ...F } fragment F on Mutation { merge ...G } fragment G on M { add }', 'mutation merge, add'], // prettier-ignore
    ['a fragment that is named twice', 'mutation { ...F ...F } fragment F on M { merge }', 'mutation merge'],
    ['fragments in a cycle', 'mutation { ...F } fragment F on M { merge ...G } fragment G on M { ...F }', 'mutation merge'], // prettier-ignore
    ['an unused fragment', 'query { a } fragment F on M { merge }', 'query a'],
    ['a field that may be left out', 'mutation M($no: Boolean!) { add merge @skip(if: true) drop @include(if: $no) }', 'mutation add, merge, drop'], // prettier-ignore
    ['a fragment that may be left out', 'mutation { add ... @include(if: false) { merge } }', 'mutation add, merge'],
    ['a field below the top level', 'query { repository { mergePullRequest } }', 'query repository'],
    ['a field in a comment', 'query { a # mergePullRequest\n }', 'query a'],
    ['a field in a text', 'query { a(x: "} mutation { merge }", y: """\n} mutation {merge}\n""") }', 'query a'],
    ['commas and byte order marks between tokens', '\ufeffmutation,{,,\ufeffmerge,}', 'mutation merge'],
    ['CR LF for a line break', 'query { a # b\r\n c }', 'query a, c'],
    ['only __typename', 'mutation { __typename }', 'mutation __typename'],
    ['__typename beside another', 'mutation { __typename x: __typename merge }', 'mutation merge'],
    ['nothing selected', 'mutation { }', 'mutation __typename'],
    ['introspection', '{ __schema { types { name } } }', 'query __schema'],
    ['variables', 'mutation M($input: In!) { merge(input: $input) { id } }', 'mutation merge'],
    ['a keyword for a name', 'query query { mutation: query fragment: mutation on: on }', 'query query, mutation, on'],
  ])('is read in any form: %s', (_form, text, fields) => {
    expect(read(text)).toBe(fields);
  });

  test.each([
    ['nothing', '', null],
    ['no text', '   # nothing\n', null],
    ['a broken text', 'mutation { merge', null],
    ['a fragment alone', 'fragment F on M { merge }', null],
    ['a type', 'query { a } type A { b: C }', null],
    ['an extension of the schema', 'query { a } extend schema { query: Mutation }', null],
    ['a missing fragment', 'mutation { ...F }', null],
    ['two fragments with one name', 'mutation { ...F } fragment F on M { add } fragment F on M { merge }', null],
    ['a fragment with variables', 'query { ...F } fragment F($x: Int = 3) on Q { a }', null],
    ['several operations without a name that chooses', 'query A { a } query B { b }', null],
    ['two operations of one name', 'query A { a } query A { b }', 'A'],
    ['an operation without a name beside another', 'query A { a } { b }', 'A'],
    ['operations of two types, whichever is selected', 'query A { a } mutation B { merge }', 'A'],
    ['an unknown operationName', 'query A { a }', 'B'],
    ['an empty operationName', 'query A { a }', ''],
    ['an operationName for an unnamed operation', '{ a }', 'A'],
    ['an operationName in another letter case', 'query A { a } query B { b }', 'a'],
  ])('is refused with %s', (_form, text, operationName) => {
    expect(read(text, operationName)).toMatch(/^error: /);
  });

  test('counts every operation in it, whichever operationName selects', () => {
    expect(read('mutation A { add } mutation B { merge }', 'A')).toBe('mutation merge, add');
  });

  test.each(['\0', '\x01', '\v', '\f', '\x7f', '\x85', '\u2028', '\u2029', '\r'])(
    'is refused with a character that servers read in different ways: %j',
    (character) => {
      expect(read(`query { a # ${character} merge\n }`)).toMatch(/^error: contains a control character/);
      expect(read(`query { a(x: """${character}""") }`)).toMatch(/^error: contains a control character/);
    },
  );
});

const spread = (name: string): string => `...${name} ...${name}`;
const many = (count: number): string => Array.from({ length: count }, (_, at) => `field${at}`).join(' ');

describe('the cost of a document is bounded', () => {
  test.each([
    ['characters', `{a(x: "${'x'.repeat(300_000)}")}`, 'is too long: send long texts as variables'],
    ['tokens', `{${' a'.repeat(10_000)}}`, 'has more than 10000 tokens'],
    ['selections in selections', `${'{a'.repeat(4_000)}${'}'.repeat(4_000)}`, 'is nested more than 200 levels deep'],
    ['lists in lists', `{a(x:${'['.repeat(9_000)}`, 'is nested more than 200 levels deep'],
    ['objects in objects', `{a(x:${'{a:'.repeat(3_000)}`, 'is nested more than 200 levels deep'],
    ['types in types', `query($a:${'['.repeat(9_000)}`, 'is nested more than 200 levels deep'],
  ])('%s', (_what, text, problem) => {
    expect(read(text)).toBe(`error: ${problem}`);
  });

  test('a fragment is expanded once, however often it is used', () => {
    const fragments = Array.from({ length: 60 }, (_, at) => `fragment F${at} on M { ${spread(`F${at + 1}`)} }`);
    expect(read(`mutation { ${spread('F0')} } ${fragments.join(' ')} fragment F60 on M { merge }`)).toBe(
      'mutation merge',
    );
  });

  test('a person can be shown every field', () => {
    expect(read(`mutation { ${many(30)} }`)).toContain('field29');
    expect(read(`mutation { ${many(60)} merge }`)).toMatch(/^error: selects too many different fields/);
    expect(read(`mutation { ${'a'.repeat(400)} }`)).toMatch(/^error: selects too many different fields/);
  });
});
