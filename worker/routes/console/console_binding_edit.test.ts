import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type InProcess, parseReply, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { signInLinkReply } from '../../../shared/wire/account.ts';
import { auditEventsPage } from '../../../shared/wire/audit_events.ts';
import { hostBindingRecord } from '../../../shared/wire/host_binding.ts';

let control: InProcess;
let cookie = '';
beforeAll(async () => {
  control = await startInProcess();
  const { url } = await parseReply(signInLinkReply, control.asUser('POST', '/v1/sign-in-links'));
  cookie = cookieOf(await control.send(url));
});
afterAll(() => control.stop());

const cookieOf = (reply: Response) => (reply.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
const open = async (path: string) => (await control.inBrowser(path, { headers: { cookie } })).text();
const save = (id: string, fields: Record<string, string>) =>
  control.inBrowser(`/bindings/${id}/edit`, {
    method: 'POST',
    headers: { cookie, origin: control.consoleOrigin },
    body: new URLSearchParams(fields),
  });
const readBinding = (id: string) => parseReply(hostBindingRecord, control.asUser('GET', `/v1/host-bindings/${id}`));

const SIGNED = {
  scheme: 'sigv4-resign',
  access_key_id: 'AKIDEXAMPLE',
  region: 'eu-west-1',
  service: 's3',
  session_token_ref: 'vault://aws/token',
};
async function bind(host: string, change: object = {}) {
  const body = { host, scheme: 'bearer', credential_ref: 'vault://user/one', ...change };
  return parseReply(hostBindingRecord, control.asUser('POST', '/v1/host-bindings', body));
}

/** The form as on the page. */
async function formOf(id: string, query = ''): Promise<Record<string, string>> {
  const page = await open(`/bindings/${id}/edit${query}`);
  const form = page.slice(page.indexOf(`action="/bindings/${id}/edit"`));
  const inputs = form.slice(0, form.indexOf('</form>')).matchAll(/<input([^>]*)\/>|<select([^]*?)<\/select>/g);
  const fields = Array.from(inputs, ([whole]): [string, string] => {
    const name = /name="([^"]*)"/.exec(whole)?.[1] ?? '';
    const chosen = whole.startsWith('<select') ? /value="([^"]*)" selected/ : /\svalue="([^"]*)"/;
    return [name, chosen.exec(whole)?.[1] ?? ''];
  });
  return Object.fromEntries(fields);
}

describe('the form of an existing binding', () => {
  test('contains all of it, so that saving it unchanged changes nothing', async () => {
    const made = await bind('*.all.example.test', {
      ...SIGNED,
      effect: 'read',
      allowed_hosts: ['a.all.example.test', 'b.all.example.test'],
      emit_mechanism: 'sentinel-swap',
      sentinel: { value: 'stand-in-of-sixteen', env: 'API_KEY' },
      body: 'stream',
      keep_cookies: true,
      requests_per_minute: 60,
      requests_per_day: 2000,
      bytes_per_day: 500_000_000,
      description: 'For the build',
    });
    const reply = await save(made.id, await formOf(made.id));
    expect([reply.status, reply.headers.get('location')]).toEqual([303, `/bindings/${made.id}?done=binding_changed`]);
    expect(await readBinding(made.id)).toEqual({ ...made, updated_at: expect.any(String) });
  });

  test('changes the scheme, and drops the fields of the old one', async () => {
    const made = await bind('scheme.example.test', SIGNED);
    const reply = await save(made.id, { ...(await formOf(made.id, '?scheme=basic')), username: 'agent' });
    expect(reply.status).toBe(303);
    const after = await readBinding(made.id);
    expect(after).toMatchObject({ scheme: 'basic', username: 'agent', credential_ref: 'vault://user/one' });
    expect(after).not.toHaveProperty('region');
  });

  test('shows problems beside the fields, and keeps the input', async () => {
    const made = await bind('wrong.example.test');
    const reply = await save(made.id, { ...(await formOf(made.id)), host: 'https://wrong', description: 'kept' });
    const page = await reply.text();
    expect(reply.status).toBe(400);
    expect(page).toContain('id="host-problem"');
    expect(page).toContain('value="kept"');
    expect(await readBinding(made.id)).toEqual(made);
  });

  test('refuses a limit that is no number, at its field', async () => {
    const made = await bind('limited.example.test');
    const reply = await save(made.id, { ...(await formOf(made.id)), requests_per_day: 'many' });
    expect([reply.status, await readBinding(made.id)]).toEqual([400, made]);
    expect(await reply.text()).toContain('id="requests_per_day-problem"');
  });

  test('takes a size of bytes in words, and shows it so', async () => {
    const made = await bind('bytes.example.test');
    const wrong = await save(made.id, { ...(await formOf(made.id)), bytes_per_day: '1.5 GB' });
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.stringContaining('value="1.5 GB"')]);
    expect((await save(made.id, { ...(await formOf(made.id)), bytes_per_day: '500MB' })).status).toBe(303);
    expect(await readBinding(made.id)).toMatchObject({ bytes_per_day: 500_000_000 });
    expect(await formOf(made.id)).toMatchObject({ bytes_per_day: '500 MB' });
    expect(await open(`/bindings/${made.id}`)).toContain('500 MB a day; on each machine');
  });

  test('is audited like a change by the API', async () => {
    const made = await bind('recorded.example.test');
    await save(made.id, { ...(await formOf(made.id)), effect: 'read' });
    const { items } = await parseReply(auditEventsPage, control.asUser('GET', '/v1/audit-events?limit=1'));
    expect(items).toEqual([
      expect.objectContaining({
        type: 'control.binding.updated',
        data: expect.objectContaining({ 'svc.control.resource': made.id }),
      }),
    ]);
    expect(await open(`/bindings/${made.id}`)).toContain(items[0]?.id);
  });
});

describe('two users who edit one binding', () => {
  test('do not overwrite each other: the second sees what the first stored', async () => {
    const made = await bind('two.example.test');
    const [first, second] = [await formOf(made.id), await formOf(made.id)];
    expect((await save(made.id, { ...first, description: 'of the first' })).status).toBe(303);
    const reply = await save(made.id, { ...second, effect: 'read', description: 'of the second' });
    const page = await reply.text();
    expect(reply.status).toBe(409);
    for (const text of ['Nothing was saved', 'of the first', 'of the second', 'Save mine in its place']) {
      expect(page).toContain(text);
    }
    expect(await readBinding(made.id)).toMatchObject({ description: 'of the first' });
    const again = /name="revision" value="([^"]+)"/.exec(page)?.[1] ?? '';
    expect((await save(made.id, { ...second, effect: 'read', revision: again })).status).toBe(303);
    expect(await readBinding(made.id)).toMatchObject({ effect: 'read' });
  });

  test.each([
    ['no revision', {}],
    ['an outdated revision', { revision: '2020-01-01T00:00:00.000Z' }],
  ])('a form with %s changes nothing', async (what, revision) => {
    const made = await bind(`${what.replaceAll(' ', '-')}.example.test`);
    const fields = { scheme: 'bearer', host: made.host, credential_ref: 'vault://user/two' };
    expect((await save(made.id, { ...fields, ...revision })).status).toBe(409);
    expect(await readBinding(made.id)).toEqual(made);
  });

  test('a binding that was deleted meanwhile is not found', async () => {
    const made = await bind('gone.example.test');
    const form = await formOf(made.id);
    await control.asUser('DELETE', `/v1/host-bindings/${made.id}`);
    expect((await save(made.id, form)).status).toBe(404);
  });
});
