import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { foundIn, plantSecret } from './support/planted_secret.ts';
import { connectPlain } from './support/raw_client.ts';
import { Svc } from './support/svc.ts';

// Bad input to bindings and secrets: each gets its own error that names the field, and nothing is stored.

const page = z.object({ items: z.array(z.looseObject({ id: z.string() })) });
const folder = mkdtempSync(join(tmpdir(), 'svc-e2e-bad-'));
let svc: Svc;

beforeAll(async () => {
  svc = await Svc.up();
});
afterAll(() => svc.stop());
afterEach(async () => {
  for (const list of ['/v1/host-bindings', '/v1/secrets']) {
    const { items } = page.parse((await svc.api('GET', list)).body);
    for (const { id } of items) await svc.api('DELETE', `${list}/${id}`);
    if (items.length > 0) throw new Error(`bad input was stored: ${JSON.stringify(items)}`);
  }
});

const BASE = { host: 'api.example.test', scheme: 'bearer', credential_ref: 'vault://user/demo' };

describe('a binding by the API', () => {
  it.each<[string, Record<string, unknown>, RegExp]>([
    ['an unknown field', { ...BASE, hosts: 'x' }, /unknown field "hosts".*"host"/],
    ['a misspelt field', { ...BASE, emit_mechanisms: 'inject' }, /"emit_mechanisms".*"emit_mechanism"/],
    ['no host', { ...BASE, host: undefined }, /host|missing/],
    ['an unknown scheme', { ...BASE, scheme: 'digest' }, /"digest".*bearer, basic/],
    ['basic without a user name', { ...BASE, scheme: 'basic' }, /user name/],
    ['header-template without its header', { ...BASE, scheme: 'header-template', template: '{token}' }, /header/],
    ['header-template without its template', { ...BASE, scheme: 'header-template', header: 'X-Key' }, /\{token\}/],
    ['a template without {token}', { ...BASE, scheme: 'header-template', header: 'X-Key', template: 'x' }, /\{token\}/],
    [
      'a template with a line break',
      { ...BASE, scheme: 'header-template', header: 'X-Key', template: 'a\r\nB: {token}' },
      /template|line break|control/,
    ],
    [
      'a header name with a space',
      { ...BASE, scheme: 'header-template', header: 'X Key', template: '{token}' },
      /header/,
    ],
    ['query-param without its parameter', { ...BASE, scheme: 'query-param' }, /parameter/],
    [
      'sigv4-resign without its key id',
      { ...BASE, scheme: 'sigv4-resign', region: 'r', service: 's3' },
      /access key id/,
    ],
    [
      'sigv4-resign without its region',
      { ...BASE, scheme: 'sigv4-resign', access_key_id: 'AKIA', service: 's3' },
      /region/,
    ],
    [
      'sigv4-resign without its service',
      { ...BASE, scheme: 'sigv4-resign', access_key_id: 'AKIA', region: 'r' },
      /service/,
    ],
    ['a parameter of another scheme', { ...BASE, username: 'octo' }, /belongs to scheme "basic"/],
    ['sentinel-swap without a sentinel', { ...BASE, emit_mechanism: 'sentinel-swap' }, /sentinel/],
    ['a sentinel with inject', { ...BASE, sentinel: { value: 'svc-sentinel-0123456789' } }, /sentinel-swap/],
    ['a short sentinel', { ...BASE, emit_mechanism: 'sentinel-swap', sentinel: { value: 'short' } }, /16 characters/],
    ['an unknown effect', { ...BASE, effect: 'reads' }, /"reads".*read, write/],
    ['a wildcard among the allowed hosts', { ...BASE, allowed_hosts: ['*.example.test'] }, /exact/],
    ['a left-over placeholder in the host', { ...BASE, host: '<your-host>.example.test' }, /placeholder|<your-host>/],
    ['a left-over placeholder in a parameter', { ...BASE, scheme: 'basic', username: '<user>' }, /placeholder|<user>/],
    ['a reference that is none', { ...BASE, credential_ref: 'user/demo' }, /vault:\/\//],
    ['a reserved vault path', { ...BASE, credential_ref: 'vault://../demo' }, /path|segment|vault/],
    ['an oversized description', { ...BASE, description: 'x'.repeat(10_000) }, /longer than 500/],
  ])('with %s is refused', async (_, fields, message) => {
    const reply = await svc.api('POST', '/v1/host-bindings', fields);
    expect(reply).toMatchObject({ status: 400, body: { error: { code: 'invalid_input' } } });
    expect(JSON.stringify(reply.body).replaceAll('\\"', '"')).toMatch(message);
  });

  it('over the largest body size is refused before it is read', async () => {
    const client = await connectPlain(svc.runFile.control_url);
    const host = new URL(svc.runFile.control_url).host;
    const key = readFileSync(join(svc.home, 'local.key'), 'utf8').trim();
    const lines = [`Host: ${host}`, `Authorization: Bearer ${key}`, 'Content-Type: application/json'];
    const head = ['POST /v1/host-bindings HTTP/1.1', ...lines, 'Content-Length: 1200000', '', ''].join('\r\n');
    const seen = await client.exchange(head);
    client.close();
    expect(seen.status).toBe(413);
    expect(seen.json()).toMatchObject({ error: { code: 'body_too_large' } });
  });
});

describe('a host', () => {
  it.each([
    '*.com',
    '*',
    '*example.test',
    'api.*.test',
    '*.*.example.test',
    'api.example.test:80',
    'api.example.test:65536',
    'api example.test',
    ' api.example.test',
    'https://api.example.test',
    'api.example.test/v1',
    'user@api.example.test',
    'api..example.test',
    '.example.test',
    '\u0430pi.example.test',
    'api.ex\u00adample.test',
    'api\u3002example.test',
    '0x7f.1',
    `${'a'.repeat(64)}.example.test`,
    `${'a.'.repeat(130)}test`,
  ])('%j is refused by the API, by name and with the reason', async (host) => {
    const reply = await svc.api('POST', '/v1/host-bindings', { ...BASE, host });
    expect(reply).toMatchObject({ status: 400, body: { error: { code: 'invalid_input' } } });
    expect(JSON.stringify(reply.body)).toMatch(/host/i);
  });

  it.each(['*.com', 'https://api.example.test', '\u0430pi.example.test'])(
    '%j is refused by the CLI, by name and with the reason',
    async (host) => {
      const args = ['binding', 'add', host, '--scheme', 'bearer', '--credential', 'vault://user/demo'];
      const done = await svc.cli(args);
      expect(done.code).toBeGreaterThan(0);
      expect(done.stderr).toMatch(/host/i);
      expect(done.stderr).not.toMatch(/\n\s+at /);
    },
  );
});

describe('two bindings for one pattern', () => {
  it('are an error on write, also if written differently', async () => {
    const id = await svc.binding(BASE);
    for (const host of ['api.example.test', 'API.Example.Test']) {
      const reply = await svc.api('POST', '/v1/host-bindings', { ...BASE, host });
      expect(reply).toMatchObject({
        status: 409,
        body: { error: { code: 'duplicate_binding', details: { binding_id: id } } },
      });
    }
    await svc.api('DELETE', `/v1/host-bindings/${id}`);
  });

  it('are an error within one file, which then changes nothing', async () => {
    const file = join(folder, 'bindings.yaml');
    const entry = '- {host: api.example.test, scheme: bearer, credential_ref: "vault://user/demo"}\n';
    writeFileSync(file, `bindings:\n${entry}${entry}`);
    const done = await svc.cli(['binding', 'apply', '-f', file]);
    expect(done.code).toBeGreaterThan(0);
    expect(done.stderr).toContain('api.example.test');
  });
});

describe('a file of bindings', () => {
  it.each([
    [
      'an unknown key',
      'bindings:\n- {hosts: api.example.test, scheme: bearer, credential_ref: "vault://user/demo"}\n',
      /"hosts".*"host"/,
    ],
    [
      'a left-over placeholder',
      'bindings:\n- {host: api.example.test, scheme: basic, username: "<user>", credential_ref: "vault://user/demo"}\n',
      /<user>|placeholder/,
    ],
    ['broken YAML', 'bindings: [', /bindings\.yaml/],
  ])('with %s is refused and changes nothing', async (_, text, message) => {
    const file = join(folder, 'bindings.yaml');
    writeFileSync(file, text);
    const done = await svc.cli(['binding', 'apply', '-f', file]);
    expect(done.code).toBeGreaterThan(0);
    expect(done.stderr).toMatch(message);
    expect(done.stderr).not.toMatch(/\n\s+at /);
  });

  it('that does not exist is named', async () => {
    const done = await svc.cli(['binding', 'apply', '-f', join(folder, 'absent.yaml')]);
    expect(done.code).toBeGreaterThan(0);
    expect(done.stderr).toContain('absent.yaml');
  });
});

describe('a secret', () => {
  it.each([
    ['as a second argument', ['secret', 'set', 'user/demo']],
    ['as an option', ['secret', 'set', 'user/demo', '--value']],
  ])('given %s is refused without being shown or stored', async (_, args) => {
    const secret = plantSecret();
    const done = await svc.cli([...args, secret]);
    expect(done.code).toBe(2);
    expect(done.stderr).toMatch(/--stdin/);
    expect(foundIn(done.stdout + done.stderr + svc.output, secret)).toEqual([]);
  });

  it.each([
    ['is empty', '', /empty/],
    ['is oversized', 'x'.repeat(70_000), /65536 bytes/],
    ['is not text', Buffer.from([0xff, 0xfe, 0x00]), /text/],
  ])('that %s is refused', async (_, input, message) => {
    const done = await svc.cli(['secret', 'set', 'user/demo', '--stdin'], { input });
    expect(done.code).toBeGreaterThan(0);
    expect(done.stderr).toMatch(message);
  });

  it.each([
    '',
    '/user',
    'user/',
    'user//demo',
    'User/demo',
    '../demo',
    'user/..',
    'mcp-servers/a',
    'connectors/a',
    'vault://user/demo/<name>',
  ])('at the path %j is refused by the API', async (path) => {
    const reply = await svc.api('POST', '/v1/secrets', { path, value: 'value-of-a-secret' });
    expect(reply).toMatchObject({ status: 400, body: { error: { code: 'invalid_input' } } });
    expect(JSON.stringify(reply.body)).not.toContain('value-of-a-secret');
  });

  it.each(['', '../demo', 'vault://user/demo/<name>'])('at the path %j is refused by the CLI', async (path) => {
    const done = await svc.cli(['secret', 'set', path, '--stdin'], { input: 'value-of-a-secret' });
    expect(done.code).toBeGreaterThan(0);
    expect(done.stderr).not.toContain('value-of-a-secret');
  });
});

describe('the control API', () => {
  it.each([
    ['no key', {}],
    ['another key', { authorization: `Bearer svc_local_${'A'.repeat(43)}` }],
    ['a key in another format', { authorization: 'Basic abc' }],
  ])('refuses a caller with %s', async (_, headers) => {
    const seen = await fetch(`${svc.runFile.control_url}/v1/secrets`, { headers });
    expect(seen.status).toBe(401);
    expect(await seen.json()).toMatchObject({ error: { code: 'unauthenticated' } });
  });

  it('answers only to loopback names, so that no web page can rebind its own name to it', async () => {
    const client = await connectPlain(svc.runFile.control_url);
    const seen = await client.exchange('GET /v1/health HTTP/1.1\r\nHost: attacker.example.test\r\n\r\n');
    client.close();
    expect(seen.status).toBe(421);
    expect(seen.json()).toMatchObject({ error: { code: 'misdirected_host' } });
  });

  it('reports a problem with a code: broken JSON, another media type, an unknown path', async () => {
    const broken = await svc.cli(['api', 'POST', '/v1/host-bindings', '--data', '{"host":']);
    expect(broken.code).toBeGreaterThan(0);
    const headers = { authorization: `Bearer ${readFileSync(join(svc.home, 'local.key'), 'utf8').trim()}` };
    const form = await fetch(`${svc.runFile.control_url}/v1/secrets`, { method: 'POST', headers, body: 'path=x' });
    expect(form.status).toBe(415);
    const absent = await svc.cli(['api', 'GET', '/v1/nothing-here']);
    expect(absent.code).toBe(1);
    expect(JSON.parse(absent.stdout)).toMatchObject({ error: { code: 'not_found' } });
  });
});
