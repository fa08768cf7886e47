import { z } from 'zod';
import { OWNERS } from '../../../shared/model/host_binding.ts';
import { type ReadyService, findReadyServices, waysOf } from '../../../shared/wire/ready_services.ts';
import { apiError, type ApiError } from '../../../shared/wire/errors.ts';
import { marketplaceQuery } from '../../../shared/wire/marketplace.ts';
import { secretValue } from '../../../shared/wire/secrets.ts';
import { cutShownText } from '../../../shared/model/shown_text.ts';
import { err, ok, type Result } from '../../../shared/model/result.ts';
import { toSentence } from '../../../shared/model/sentence.ts';
import { EMPTY_FORM, type FormState } from '../../pages/components/form_field.ts';
import { withoutCalls } from '../../pages/frame/page_words.ts';
import { servicePage, type TestCall } from '../../pages/connectors/service.ts';
import { type FoundServers, servicesPage } from '../../pages/connectors/services.ts';
import { type Caller, visibleOwners } from '../../kernel/caller.ts';
import { browse } from '../../marketplace/browse.ts';
import { runOperation } from '../../services/connectors/run_operation.ts';
import { describeReady, sealByBindings, sealByConnector } from '../../services/ready/seal_ready.ts';
import type { AppContext } from '../http/app_env.ts';
import {
  dropEmpty,
  type Fields,
  forChange,
  formAgain,
  forReader,
  invalidForm,
  problem,
  redirectDone,
  toRefusedForm,
  ownerChoice,
} from './console.ts';
import { consolePage } from './pages.ts';

const MOST_SERVERS = 3;
/** A page does not wait longer for the registry of MCP servers. */
const PATIENCE_MS = 1_500;
const MAX_SEARCH = 200;
/** Of a test call's reply. */
const MOST_SHOWN = 4_000;

/** `GET /services?q=`: what the catalog has, and what the MCP registry has. */
export const getServices = forReader(async (c, caller) => {
  const text = (c.req.query('q') ?? '').trim().slice(0, MAX_SEARCH);
  const services = findReadyServices(c.get('services')(), text);
  const servers = text === '' ? {} : { servers: await findServers(c, caller, text) };
  return consolePage(c, caller, servicesPage({ text, services, ...servers }));
});

/** The best servers of the registry; null if it does not answer soon. A late answer is not lost: the registry's replies are kept. */
async function findServers(c: AppContext, caller: Caller, text: string): Promise<FoundServers> {
  const found = browse(c.get('context'), caller, marketplaceQuery.parse({ q: text, limit: MOST_SERVERS }));
  c.get('context').defer('a search of the MCP registry', async () => void (await found));
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS, null);
  });
  const answer = await Promise.race([found, late]).finally(() => clearTimeout(timer));
  return answer?.ok === true ? answer.value.items : null;
}

/** `GET /services/{name}` */
export const getService = forReader(async (c, caller) => {
  const ready = readyNamed(c);
  if (!ready.ok) return problem(c, caller, ready.error);
  return consolePage(c, caller, await view(c, caller, ready.value, { done: c.req.query('done') }));
});

function readyNamed(c: AppContext): Result<ReadyService, ApiError> {
  const name = c.req.param('name') ?? '';
  const found = c
    .get('services')()
    .find((ready) => ready.name === name);
  return found === undefined
    ? err(apiError('not_found', 'the catalog has no service of this name: search for it'))
    : ok(found);
}

interface Shown {
  readonly form?: FormState;
  readonly test?: TestCall;
  readonly done?: string | undefined;
}

async function view(c: AppContext, caller: Caller, ready: ReadyService, shown: Shown) {
  const [state, servers] = await Promise.all([
    describeReady(c.get('context'), caller, ready, visibleOwners(caller)),
    findServers(c, caller, ready.title),
  ]);
  return servicePage({
    ready,
    templates: c.get('templates')(),
    state,
    servers,
    form: shown.form ?? EMPTY_FORM,
    owners: ownerChoice(c, caller),
    test: shown.test ?? null,
    done: shown.done,
  });
}

/** Never returned to the browser. */
const SECRETS = ['token'];
const text = z.string().max(500).optional();

const connectInput = z.strictObject({
  way: z.string().optional(),
  token: secretValue.optional(),
  owner: z.enum(OWNERS).default('personal'),
  replace: z.literal('on').optional(),
  host: text,
  username: text,
  access_key_id: text,
  region: text,
  service: text,
});

/** `POST /services/{name}`: connects it by the chosen way. */
export const submitService = forChange(async (c, caller, fields) => {
  const ready = readyNamed(c);
  if (!ready.ok) return problem(c, caller, ready.error);
  const parsed = connectInput.safeParse(dropEmpty(trimmed(fields)));
  if (!parsed.success) {
    const form = invalidForm(fields, parsed.error, SECRETS);
    return formAgain(c, caller, await view(c, caller, ready.value, { form }));
  }
  const connected = await connect(c, caller, ready.value, parsed.data);
  if (connected.ok) return redirectDone(c, connected.value.path, connected.value.done);
  const form = toRefusedForm(fields, connected.error, SECRETS);
  return formAgain(c, caller, await view(c, caller, ready.value, { form }), connected.error);
});

/** A pasted text often ends with a space or a line break. */
function trimmed(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value.trim()]));
}

async function connect(
  c: AppContext,
  caller: Caller,
  ready: ReadyService,
  { way: wanted, token, owner, replace, ...others }: z.output<typeof connectInput>,
): Promise<Result<{ readonly path: string; readonly done: string }, ApiError>> {
  const context = c.get('context');
  const { service, connector } = ready;
  const way = wanted ?? waysOf(ready)[0];
  const input = { owner, token: token ?? null, replaces: replace !== undefined };
  const path = `/services/${ready.name}`;
  if (way === 'connector' && connector !== null) {
    const sealed = await sealByConnector(context, caller, connector, input);
    if (!sealed.ok) return sealed;
    const isSignIn = connector.credential.kind === 'oauth2';
    return ok(
      isSignIn
        ? { path: `/connectors/${sealed.value}`, done: 'connector_installed' }
        : { path, done: 'service_connected' },
    );
  }
  if (way === 'bindings' && service !== null) {
    const given = Object.entries(others).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    );
    const wantedBindings = { ...input, templates: c.get('templates')(), values: Object.fromEntries(given) };
    const sealed = await sealByBindings(context, caller, service, wantedBindings);
    return sealed.ok ? ok({ path, done: 'service_connected' }) : sealed;
  }
  const message = 'is not a way to connect this service: choose one of those shown';
  return err(apiError('invalid_input', `way ${message}`, { fields: [{ field: 'way', message }] }));
}

/** `POST /services/{name}/test`: runs the simplest operation of the installed connector that reads. */
export const submitServiceTest = forChange(async (c, caller) => {
  const ready = readyNamed(c);
  if (!ready.ok) return problem(c, caller, ready.error);
  return consolePage(c, caller, await view(c, caller, ready.value, { test: await testCall(c, caller, ready.value) }));
});

async function testCall(c: AppContext, caller: Caller, ready: ReadyService): Promise<TestCall> {
  const { test } = await describeReady(c.get('context'), caller, ready, visibleOwners(caller));
  const fqn = ready.connector?.connector.fqn;
  if (fqn === undefined || test === null) {
    return { problem: 'It is not connected, or none of its operations reads something without an input.' };
  }
  const request = { connector_fqn: fqn, operation: test.operation, args: {} };
  const run = await runOperation(c.get('context'), caller, request);
  if (!run.ok) return { problem: toSentence(withoutCalls(run.error.message)) };
  return { reply: run.value, excerpt: excerptOf(run.value.body_base64) };
}

/** The beginning of a reply that is text. */
function excerptOf(base64: string): string {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return cutShownText(new TextDecoder('utf-8', { fatal: true }).decode(bytes), MOST_SHOWN);
  } catch {
    return '';
  }
}
