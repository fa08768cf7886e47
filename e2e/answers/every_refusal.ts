import fc from 'fast-check';
import { brokenCalls, validCalls, type WireCall } from '../runtimes/api_calls.ts';
import { type DescribedOperation, readDocument } from '../runtimes/api_document.ts';
import { HINTS } from '../runtimes/api_hints.ts';
import type { Asker } from './asker.ts';
import { consoleRoutes, routeOf, type SeenAnswer } from './every_answer.ts';

/** Fields in which programs and people send secrets. */
const SECRET_FIELDS =
  /^(?:value|values|key|secret_value|client_secret|secret_access_key|(?:\w+_)?password|\w+_token|token|code|assertion|client_assertion)$/;
/** What a stream of events ends by is its reader. */
const STREAM = 'text/event-stream';
/** The same calls in each run. */
const SEED = 20_261_130;
/** So many calls of either kind for each operation. */
const CALLS = 2;
/** Their address is repeated: it goes on there after the sign-in. */
const GOES_ON = new Set(['/oauth/authorize']);
/** After these, nobody asks any more. */
const ENDS = ['POST /v1/sidecar/leave', 'DELETE /v1/me', 'POST /auth/logout'];

/**
 * Calls each operation of the API with `value` wherever a secret belongs, and what it answers: as its caller, rightly and wrongly,
 * and as somebody who sends the value in place of a key, or is of the other kind. `chosen` says which operations are called, by their
 * place in the description.
 */
export async function callWithPlanted(
  asker: Asker,
  value: string,
  chosen: (index: number) => boolean = () => true,
): Promise<readonly SeenAnswer[]> {
  const operations = readDocument(await (await asker.byKey('/openapi.json')).text(), HINTS);
  const answers: SeenAnswer[] = [];
  const calls = operations.filter((_, index) => chosen(index)).toSorted((a, b) => endsCalls(a) - endsCalls(b));
  for (const operation of calls) {
    const valid = fc.sample(validCalls(operation), { seed: SEED, numRuns: CALLS });
    const broken = fc.sample(brokenCalls(operation), { seed: SEED, numRuns: CALLS });
    for (const call of valid.slice(0, 1)) {
      answers.push(await answerOf(call, 'by a stranger', callAs(asker, plantIn(call, value), `Bearer ${value}`)));
      const other = operation.access === 'sidecar' ? byUser : bySidecar;
      answers.push(await answerOf(call, 'by the other kind', other(asker, plantIn(call, value))));
    }
    for (const call of [...broken, ...valid]) {
      const send = operation.access === 'sidecar' ? bySidecar : byUser;
      answers.push(await answerOf(call, 'by its caller', send(asker, plantIn(call, value))));
    }
  }
  return answers;
}

const endsCalls = (operation: DescribedOperation): number => Number(ENDS.includes(nameOf(operation)));

const nameOf = ({ method, path }: DescribedOperation): string => `${method} ${path}`;

const byUser = (asker: Asker, call: WireCall) => callAs(asker, call);

function callAs({ byKey, inBrowser }: Asker, call: WireCall, authorization?: string): Promise<Response> {
  const headers = {
    ...call.headers,
    ...(authorization !== undefined && { authorization }),
    ...(call.body !== null && { 'content-type': call.contentType }),
  };
  const { method } = call.operation;
  const sent = { method, headers, ...(call.body !== null && { body: call.body }) };
  // The steps of a sign-in are only served under the name of the console.
  return call.operation.isOfBrowser ? inBrowser(call.target, sent) : byKey(call.target, sent);
}

async function bySidecar(asker: Asker, call: WireCall): Promise<Response> {
  const { sidecar } = asker;
  const claims = await sidecar.claims(call.operation.method, call.target, call.body ?? '');
  return callAs(asker, call, `Bearer ${await sidecar.token(claims)}`);
}

async function answerOf({ operation }: WireCall, how: string, sent: Promise<Response>): Promise<SeenAnswer> {
  const reply = await sent;
  const isStream = reply.headers.get('content-type')?.startsWith(STREAM) === true;
  if (isStream) await reply.body?.cancel();
  const text = isStream ? '' : await reply.text();
  return {
    to: `${nameOf(operation)} ${how}`,
    route: operation.path,
    status: reply.status,
    text: headersOf(reply) + text,
  };
}

function headersOf({ headers }: Response): string {
  return [...headers].map(([name, value]) => `${name}: ${value}\n`).join('');
}

/** The call with the value in each field for a secret, and in a parameter of the query that there is not. */
function plantIn(call: WireCall, value: string): WireCall {
  const body = call.body === null ? null : plantInJson(call.body, value);
  if (GOES_ON.has(call.operation.path)) return { ...call, body };
  const target = `${call.target}${call.target.includes('?') ? '&' : '?'}planted=${encodeURIComponent(value)}`;
  return { ...call, target, body };
}

/** Text that is no JSON is left as it is. */
function plantInJson(text: string, value: string): string {
  const replace = (name: string, given: unknown): unknown => {
    if (!SECRET_FIELDS.test(name)) return given;
    if (Array.isArray(given)) return given.map(() => value);
    return typeof given === 'string' ? value : given;
  };
  try {
    return JSON.stringify(JSON.parse(text, replace));
  } catch {
    return text;
  }
}

/** Sends the forms that these pages have, each once, with `value` in the fields whose content a browser hides. */
export async function submitWithPlanted(
  { inBrowser, origin }: Asker,
  pages: readonly SeenAnswer[],
  value: string,
): Promise<readonly SeenAnswer[]> {
  const routes = consoleRoutes('post');
  const forms = new Map<string, [string, string][]>();
  for (const { text } of pages) {
    for (const [, attributes = '', inner = ''] of text.matchAll(/<form\b([^>]*)>([^]*?)<\/form>/g)) {
      const action = attributeOf(attributes, 'action');
      if (attributeOf(attributes, 'method') === 'post') forms.set(action, fieldsOf(inner, value));
    }
  }
  const answers: SeenAnswer[] = [];
  for (const [action, fields] of [...forms].toSorted(([a], [b]) => endsSignIn(a) - endsSignIn(b))) {
    const body = new URLSearchParams(fields);
    const reply = await inBrowser(action, { method: 'POST', headers: { origin }, body });
    const text = headersOf(reply) + (await reply.text());
    answers.push({ to: `form ${action}`, route: routeOf(action, routes), status: reply.status, text });
  }
  return answers;
}

/** What ends the sign-in of the browser comes last. */
const endsSignIn = (action: string): number => Number(/^\/(?:auth\/logout$|account\/sign-ins\/)/.test(action));

/** The fields as the page fills them, and the value in those for secrets. */
function fieldsOf(form: string, value: string): [string, string][] {
  const fields: [string, string][] = [];
  for (const [, tag = '', attributes = ''] of form.matchAll(/<(input|textarea|select)\b([^>]*)>/g)) {
    const [name, type] = [attributeOf(attributes, 'name'), attributeOf(attributes, 'type')];
    const isChosen = !['radio', 'checkbox'].includes(type) || /\bchecked\b/.test(attributes);
    if (name === '' || !isChosen) continue;
    const isSecret = type === 'password' || (tag === 'textarea' && SECRET_FIELDS.test(name));
    fields.push([name, isSecret ? value : attributeOf(attributes, 'value')]);
  }
  return fields;
}

function attributeOf(attributes: string, name: string): string {
  const [, text = ''] = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes) ?? [];
  return text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}
