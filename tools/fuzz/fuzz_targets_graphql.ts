import { buildSchema, execute, GraphQLError, Kind, parse, type DocumentNode } from 'graphql';
import type { ConnectorOperation } from '../../shared/connect/connector_index.ts';
import { readGraphqlDocument, type GraphqlDocument } from '../../shared/connect/graphql_document.ts';
import { recogniseGraphql } from '../../shared/connect/graphql_operation.ts';
import { sampleConnector, sampleOperation } from '../../shared/connect/testing/sample_connector.ts';
import { GRAPHQL_TYPES } from '../../shared/model/connector.ts';
import type { FuzzTarget } from './fuzz_engine.ts';

const FIELDS = 'a: T b: T merge: T add: T viewer: T';
const SCHEMA = buildSchema(
  `type T { ${FIELDS} } type Query { ${FIELDS} } type Mutation { ${FIELDS} } type Subscription { ${FIELDS} }`,
);

/** The fields that the executor of graphql-js runs for a document: every field of a root type whose resolver it calls, without validation. */
function runExecutor(document: DocumentNode, operationName: string | null): readonly string[] {
  const ran: string[] = [];
  const result = execute({
    schema: SCHEMA,
    document,
    operationName,
    variableValues: { yes: true, no: false },
    fieldResolver: (_source, _args, _context, { parentType, fieldName }) => {
      if (parentType.name === 'T') return null;
      ran.push(`${parentType.name.toLowerCase()} ${fieldName}`);
      return {};
    },
  });
  // Nothing here is a promise, so execution is complete on return.
  void result;
  return ran;
}

/** A field that some operation of a text runs but our reading does not list; null if there is none. */
function findUntold(text: string, told: GraphqlDocument): string | null {
  const document = parse(text);
  const names = document.definitions.flatMap((each) =>
    each.kind === Kind.OPERATION_DEFINITION ? [each.name?.value ?? null] : [],
  );
  const fields = new Set([...told.fields.keys()].map((name) => `${told.type} ${name}`));
  const missing = names.flatMap((name) => runExecutor(document, name)).find((field) => !fields.has(field));
  return missing === undefined ? null : `tells ${[...fields].join(', ')} of a document that runs ${missing}`;
}

const DOCUMENTS = [
  '{viewer{a}}',
  'query Q($yes: Boolean!) { a b @include(if: $yes) ... on Query @skip(if: $no) { add } }',
  'mutation M { x: add(i: {a: [1, "b", """c"""]}) { a } ...F } fragment F on Mutation { merge ...G } fragment G on Mutation { b ...F }',
  'query A { a } query B { ...F } fragment F on Query { ... { b } }',
  'subscription S { a } # merge\n',
  '\ufeff,mutation,{,add,__typename,}',
] as const;

const documents: FuzzTarget = {
  name: 'GraphQL documents',
  seeds: DOCUMENTS,
  words: ['{', '}', '(', ')', '[', ']', '...', '...F', '... on Mutation {', 'fragment F on Mutation {', 'fragment G on Query {', 'mutation ', 'query ', 'subscription ', 'mutation M {', 'query A {', 'merge', 'add', 'viewer', 'a', 'b', 'x:', '@skip(if: true)', '@include(if: $no)', '@skip(if: $yes)', '"', '"""', '\\"""', '#', '\n', '\r', '\r\n', ',', '\ufeff', '\0', '\u2028', '$', ':', '__typename', 'extend ', 'type T {', 'on', '&', '|', '!', '1.5e3'], // prettier-ignore
  check(text) {
    const names = [null, ...new Set([...text.matchAll(/\b[A-Z]\b/g)].map(([name]) => name))];
    for (const name of names) {
      const read = readGraphqlDocument(text, name);
      const problem = read.ok ? findUntold(text, read.value) : null;
      if (problem !== null) return problem;
    }
    return null;
  },
};

const CONNECTOR = sampleConnector([]);
const CANDIDATES: readonly ConnectorOperation[] = GRAPHQL_TYPES.map((type) => ({
  connector: CONNECTOR,
  operation: sampleOperation({ name: type, graphql: { type } }),
}));

/** The ways in which servers find the document in a body. */
const SERVERS: Readonly<Record<string, (body: string) => unknown>> = {
  'one that takes the last of two keys': (body) => memberOf(JSON.parse(body), 'query'),
  'one that takes the first of two keys': (body) => firstMember(body),
  'one that takes keys in any letters': (body) => {
    const found = Object.entries(Object(JSON.parse(body))).filter(([key]) => key.toLowerCase() === 'query');
    return found.at(-1)?.[1];
  },
  'one that takes a batch': (body) => memberOf(Object(JSON.parse(body))[0], 'query'),
  'one that takes a batch by its name': (body) => memberOf(Object(memberOf(JSON.parse(body), '_json'))[0], 'query'),
  'one that takes a form': (body) => new URLSearchParams(body).getAll('query').at(-1),
  'one that skips a byte order mark': (body) => memberOf(JSON.parse(body.replace(/^\u00ef\u00bb\u00bf/, '')), 'query'),
};

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Object.entries(value).find(([name]) => name === key)?.[1] : null;
}

/** For an object without nested ones: the first string that is a key is one of its keys. */
function firstMember(body: string): unknown {
  const value: unknown = JSON.parse(body);
  if (Object.values(Object(value)).some((member) => typeof member === 'object')) return null;
  for (const [, key = '', text = ''] of body.matchAll(/("(?:[^"\\]|\\.)*")\s*:\s*("(?:[^"\\]|\\.)*")/g)) {
    if (JSON.parse(key) === 'query') return JSON.parse(text);
  }
  return null;
}

const bodies: FuzzTarget = {
  name: 'GraphQL requests',
  seeds: [
    '{"query":"{viewer{a}}"}',
    '{"query":"mutation M { merge }","operationName":"M","variables":{"query":"{a}"},"extensions":{}}',
    '{"variables":null,"qu\\u0065ry":"query{a}"}',
    '[{"query":"{a}"},{"query":"mutation{merge}"}]',
    'query=mutation%7Bmerge%7D',
  ],
  words: ['"query":', '"Query":', '"qu\\u0065ry":', '"operationName":', '"variables":', '"extensions":', '"persistedQuery":', '"_json":', '"id":', '"__proto__":', '{', '}', '[', ']', ',', ':', '"', '\\', '\\u0022', '"{a}"', '"mutation{merge}"', 'null', '1', '\u00ef\u00bb\u00bf', 'query=', '&', ' ', '\n'], // prettier-ignore
  check(body) {
    const found = recogniseGraphql(CANDIDATES, { method: 'POST', query: null }, [Buffer.from(body, 'latin1')]);
    const told = found.ok ? found.value.document : undefined;
    if (told === undefined) return null;
    for (const [server, read] of Object.entries(SERVERS)) {
      const problem = problemAt(read, body, told);
      if (problem !== null) return `${problem}, at ${server}`;
    }
    return null;
  },
};

/** A server that cannot read a request runs nothing. */
function problemAt(read: (body: string) => unknown, body: string, told: GraphqlDocument): string | null {
  try {
    const text = read(body);
    return typeof text === 'string' ? findUntold(text, told) : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof GraphQLError) return null;
    throw error;
  }
}

export const GRAPHQL_TARGETS: readonly FuzzTarget[] = [documents, bodies];
