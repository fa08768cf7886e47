import type { Mutation } from '../mutation.ts';

const ROW = 'JSON bodies, 8 No way round a connector';
const UNREADABLE = 'JSON bodies: 400 `json_unreadable`';
const NOT_ALLOWED = 'JSON bodies: 403 `json_operation_not_allowed`';
const VALUES = 'shared/connect/json_values.ts';
const NAMES = 'shared/model/json_names.ts';
const OPERATION = 'shared/connect/json_operation.ts';
const CONTRACT = 'shared/enforce/json_request.ts';
const INDEX = 'shared/connect/connector_index.ts';
const OPERATION_TEST = 'shared/connect/json_operation.test.ts';
const CONTRACT_TEST = 'shared/enforce/json_request.test.ts';
const TUNNEL = 'sidecar/data_plane/json_body.test.ts';

/** The checks of requests whose JSON body decides which operation they are (docs/decisions/0101). */
export const JSON_MUTATIONS: readonly Mutation[] = [
  {
    row: ROW,
    holds: 'another spelling of the path does not bypass the rules for a body',
    file: INDEX,
    text: ' || operation.graphql !== undefined || operation.json !== undefined;',
    replacement: ' || operation.graphql !== undefined;',
    tests: [TUNNEL],
  },
  {
    row: ROW,
    holds: 'a body does not turn the request into another method’s',
    file: 'sidecar/exchange/exchange_by_body.ts',
    text: 'if (isAnother(() => bodyText(body.value))) return refuse(',
    replacement: 'if (attempted === null) return refuse(',
    tests: [TUNNEL],
  },
  {
    row: ROW,
    holds: 'an operation that is run by name has its own bodies only',
    file: 'shared/connect/confirm_operation.ts',
    text: 'return recognised.value.operation === named.operation ? recognised : err(ANOTHER);',
    replacement: 'return recognised;',
    tests: [TUNNEL],
  },
  {
    row: NOT_ALLOWED,
    holds: 'every rule of an operation holds',
    file: OPERATION,
    text: 'json?.every((rule)',
    replacement: 'json?.some((rule)',
    tests: [OPERATION_TEST],
  },
  {
    row: NOT_ALLOWED,
    holds: 'a body that several operations have is none of them',
    file: OPERATION,
    text: 'if (only !== undefined && fitting.length === 1)',
    replacement: 'if (only !== undefined)',
    tests: [OPERATION_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'no member has a name that a server could take for a ruled one',
    file: VALUES,
    text: 'if (!lookalikes.has(foldName(name))) return null;',
    replacement: 'if (lookalikes.size >= 0) return null;',
    tests: [OPERATION_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'names that share a capital are one name',
    file: NAMES,
    text: '.toUpperCase().toLowerCase()',
    replacement: '.toLowerCase()',
    tests: [OPERATION_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'no member beside a ruled one has a control character',
    file: VALUES,
    text: 'if (/\\p{Cc}/u.test(name))',
    replacement: 'if (name === null)',
    tests: [OPERATION_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'a ruled value has the type of its rules',
    file: VALUES,
    text: '|| !types.has(typeof value))',
    replacement: '|| types.size === 0)',
    tests: [OPERATION_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'a ruled number is one that every server reads exactly',
    file: VALUES,
    text: 'Math.abs(value) > Number.MAX_SAFE_INTEGER',
    replacement: 'Number.isNaN(value)',
    tests: [OPERATION_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'a fraction is not rounded to a listed number',
    file: VALUES,
    text: '!Number.isInteger(value) && numbers',
    replacement: 'Number.isNaN(value) && numbers',
    tests: [OPERATION_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'a ruled word is not another spelling of a listed one',
    file: VALUES,
    text: 'foldWord(String(each)) === foldWord(value)',
    replacement: 'String(each) === value',
    tests: [OPERATION_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'what leads to a ruled value is an object',
    file: VALUES,
    text: ' || Array.isArray(object)) {',
    replacement: ') {',
    tests: [OPERATION_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'a ruled value is not in the query too',
    file: CONTRACT,
    text: '.some((name) => names.has(name))',
    replacement: '.some((name) => name === pointer)',
    tests: [CONTRACT_TEST, TUNNEL],
  },
  {
    row: UNREADABLE,
    holds: 'a ruled name with an index is one in the query',
    file: CONTRACT,
    text: 'return [foldName(name), ...parts.map',
    replacement: 'return [foldName(name), ...parts.slice(1, 1).map',
    tests: [CONTRACT_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'a body is sent as a type that every server knows',
    file: CONTRACT,
    text: 'const JSON_TYPE = /^application\\/json(?:',
    replacement: 'const JSON_TYPE = /^application\\/(?:[a-z.]+[+])?json(?:',
    tests: [CONTRACT_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'the query does not name another method',
    file: CONTRACT,
    text: 'methodOverridesOfQuery(method, query).length > 0',
    replacement: 'methodOverridesOfQuery(method, query).length < 0',
    tests: [CONTRACT_TEST],
  },
  {
    row: UNREADABLE,
    holds: 'a body that is read as JSON is sent as JSON',
    file: CONTRACT,
    text: 'request.hasBody ? findBodyFault(request, JSON_TYPE) : null',
    replacement: 'null',
    tests: [CONTRACT_TEST, TUNNEL],
  },
];
