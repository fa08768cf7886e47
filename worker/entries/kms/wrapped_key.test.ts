import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newMasterKey } from '../../../e2e/runtimes/in_process.ts';
import { KmsStub } from '../../../e2e/support/kms_stub.ts';
import { parseKmsKey } from '../../../shared/model/kms_key.ts';
import type { Protection } from '../protected_key.ts';
import { beginKeyChange, endKeyChange, fileKeys, keyProtection, protectKeyFile } from '../vault_key_files.ts';
import { nodeKms } from './node_kms.ts';

// The two services are stubs that verify signatures and tokens: e2e/support/kms_stub.ts.

const AWS = 'arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const GOOGLE = 'projects/our-project/locations/europe-west3/keyRings/svc/cryptoKeys/master';
const OTHER: Readonly<Record<string, string>> = { [AWS]: AWS.replace('1234abcd', 'mrk-9876'), [GOOGLE]: `${GOOGLE}-2` };
const KEYS = {
  AccessKeyId: 'ASIAIOSFODNN7EXAMPLE',
  SecretAccessKey: 'wJalrXUtnFEMI/K7MDENG',
  SessionToken: 'a/token==',
};
const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 });

let home: string;
let stub: KmsStub;
let server: Server;
let kmsUrl: string;
let files: Readonly<Record<string, string>>;
const key = newMasterKey();
const fileOf = (name: string): string => readFileSync(join(home, name), 'utf8');

const settings = (name: string) => ({ kmsUrl, kmsCredentialsFile: join(home, files[name] ?? '') });
function wrapping(name: string, more: object = {}): Protection {
  const parsed = parseKmsKey(name);
  if (!parsed.ok) throw new Error(parsed.error);
  return { by: 'kms', key: parsed.value, kms: nodeKms({ ...settings(name), ...more }) };
}
const readKeys = async (name: string) => {
  const { masterKey, previousMasterKey } = await fileKeys(settings(name), home);
  return [masterKey?.reveal(), previousMasterKey?.reveal()];
};

beforeAll(async () => {
  stub = new KmsStub({
    keys: [AWS, GOOGLE, ...Object.values(OTHER)],
    accessKeyId: KEYS.AccessKeyId,
    secretAccessKey: KEYS.SecretAccessKey,
    sessionToken: KEYS.SessionToken,
    serviceAccount: RSA.publicKey,
  });
  ({ url: kmsUrl, server } = await stub.start());
});
afterAll(() => server.close());

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'svc-wrapped-'));
  files = { [AWS]: 'aws.json', [GOOGLE]: 'google.json' };
  stub.instead = null;
  stub.altered = {};
  writeFileSync(join(home, 'vault.key'), `${key.reveal()}\n`, { mode: 0o600 });
  writeFileSync(join(home, 'aws.json'), JSON.stringify({ Version: 1, ...KEYS }));
  const private_key = RSA.privateKey.export({ type: 'pkcs8', format: 'pem' });
  const account = { type: 'service_account', client_email: 'svc@our-project.iam.gserviceaccount.com', private_key };
  writeFileSync(join(home, 'google.json'), JSON.stringify({ ...account, token_uri: `${kmsUrl}/token` }));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe.each([AWS, GOOGLE])('a master key that %s wraps', (name) => {
  it('is in no file as it is, opens with the KMS, moves to another key of it, and goes back into its file', async () => {
    await protectKeyFile(settings(name), home, wrapping(name));
    expect([await keyProtection(home), fileOf('vault.key').includes(key.reveal())]).toEqual(['kms', false]);
    expect(JSON.parse(fileOf('vault.key'))).toMatchObject({ protection: 'kms', key: name });
    expect(await readKeys(name)).toEqual([key.reveal(), undefined]);
    const other = OTHER[name] ?? '';
    await protectKeyFile(settings(name), home, wrapping(other, settings(name)));
    expect(JSON.parse(fileOf('vault.key'))).toMatchObject({ key: other });
    expect(await readKeys(name)).toEqual([key.reveal(), undefined]);
    await protectKeyFile(settings(name), home, null);
    expect(fileOf('vault.key')).toBe(`${key.reveal()}\n`);
  });

  it('is changed under the same key of the KMS, also by a run that was killed', async () => {
    await protectKeyFile(settings(name), home, wrapping(name));
    const wrapped = JSON.parse(fileOf('vault.key')).wrapped;
    const first = await beginKeyChange(settings(name), home, key);
    const again = await beginKeyChange(settings(name), home, key);
    expect(again.after.reveal()).toBe(first.after.reveal());
    for (const file of ['vault.key', 'vault.key.change']) {
      expect(fileOf(file)).not.toContain(key.reveal());
      expect(fileOf(file)).not.toContain(first.after.reveal());
    }
    expect(await readKeys(name)).toEqual([first.after.reveal(), key.reveal()]);
    await endKeyChange(settings(name), home, again);
    expect(await readKeys(name)).toEqual([first.after.reveal(), undefined]);
    expect(JSON.parse(fileOf('vault.key')).wrapped).not.toBe(wrapped);
  });

  it('does not open for another file, or if the wrapped key is another', async () => {
    await protectKeyFile(settings(name), home, wrapping(name));
    await beginKeyChange(settings(name), home, key);
    const [own, change] = [JSON.parse(fileOf('vault.key')), JSON.parse(fileOf('vault.key.change'))];
    writeFileSync(join(home, 'vault.key'), JSON.stringify({ ...own, wrapped: change.wrapped }));
    await expect(fileKeys(settings(name), home)).rejects.toMatchObject({
      code: 'vault_kms_unavailable',
      message: expect.stringContaining('vault.key was changed'),
    });
    writeFileSync(join(home, 'vault.key'), JSON.stringify(own));
    expect((await readKeys(name))[0]).toBeDefined();
  });

  it('is not replaced if the KMS does not open again what it wrapped', async () => {
    stub.altered = { Plaintext: Buffer.alloc(32).toString('base64'), plaintext: Buffer.alloc(32).toString('base64') };
    await expect(protectKeyFile(settings(name), home, wrapping(name))).rejects.toMatchObject({
      code: 'vault_key_damaged',
    });
    stub.altered = { Plaintext: 'c2hvcnQ=', plaintext: 'c2hvcnQ=' };
    await expect(protectKeyFile(settings(name), home, wrapping(name))).rejects.toThrow('is not its key');
    expect(fileOf('vault.key')).toBe(`${key.reveal()}\n`);
    expect(readdirSync(home).filter((file) => file.includes('vault'))).toEqual(['vault.key']);
  });

  it('is not opened by an answer for another key, or by one that is no answer', async () => {
    stub.altered = { KeyId: OTHER[name], name: `${OTHER[name]}/cryptoKeyVersions/1` };
    await expect(protectKeyFile(settings(name), home, wrapping(name))).rejects.toThrow('used another key');
    stub.altered = { CiphertextBlob: '<', ciphertext: '<' };
    await expect(protectKeyFile(settings(name), home, wrapping(name))).rejects.toThrow('not that of a KMS');
    expect(fileOf('vault.key')).toBe(`${key.reveal()}\n`);
  });
});

const aws = (code: string, status = 400) => ({ status, body: { __type: code, message: 'text with a secret' } });
const google = (status: string, code = 400) => ({
  status: code,
  body: { error: { code, status, message: 'text with a secret' } },
});

describe('a refusal of the KMS', () => {
  it.each([
    [AWS, aws('AccessDeniedException'), /AccessDeniedException \(allow kms:Encrypt/],
    [AWS, aws('com.amazonaws.kms#DisabledException'), /: DisabledException \(enable the key/],
    [AWS, aws('KMSInvalidStateException'), /waits for its deletion/],
    [AWS, aws('ThrottlingException'), /again later/],
    [AWS, aws('KMSInternalException', 500), /status 500.*try again/],
    [AWS, aws('constructor'), /status 400: constructor$/],
    [AWS, { status: 502, body: {} }, /status 502$/],
    [GOOGLE, google('PERMISSION_DENIED', 403), /roles\/cloudkms/],
    [GOOGLE, google('FAILED_PRECONDITION'), /disabled or destroyed/],
    [GOOGLE, google('RESOURCE_EXHAUSTED', 429), /quota/],
    [GOOGLE, google('UNAVAILABLE', 503), /try again/],
  ])('of %s ends the start with its code and what to do, and changes nothing', async (name, answer, message) => {
    await protectKeyFile(settings(name), home, wrapping(name));
    const before = fileOf('vault.key');
    stub.instead = answer;
    const refusal = { code: 'vault_kms_unavailable', message: expect.stringMatching(message) };
    await expect(fileKeys(settings(name), home)).rejects.toMatchObject(refusal);
    await expect(fileKeys(settings(name), home)).rejects.not.toThrow('text with a secret');
    await expect(protectKeyFile(settings(name), home, null)).rejects.toMatchObject(refusal);
    expect(fileOf('vault.key')).toBe(before);
  });

  it.each([
    [AWS, 'aws.json', { ...KEYS, SecretAccessKey: 'another' }, /InvalidSignatureException/],
    [AWS, 'aws.json', { ...KEYS, SessionToken: 'another' }, /UnrecognizedClientException/],
    [AWS, 'aws.json', { ...KEYS, SecretAccessKey: 'a\nb' }, /a character that no key has/],
    [AWS, 'aws.json', { SecretAccessKey: 'kept-out-of-errors' }, /AccessKeyId: give JSON/],
    [AWS, 'aws.json', 'kept-out-of-errors', /cannot be used: give JSON/],
    [GOOGLE, 'google.json', { type: 'authorized_user' }, /because of type: give the JSON key of a service account/],
  ])('of credentials that are not right says which, without them', async (name, file, content, message) => {
    await protectKeyFile(settings(name), home, wrapping(name));
    writeFileSync(join(home, file), typeof content === 'string' ? content : JSON.stringify(content));
    const failed = fileKeys(settings(name), home);
    await expect(failed).rejects.toMatchObject({
      code: 'vault_kms_unavailable',
      message: expect.stringMatching(message),
    });
    await expect(failed).rejects.not.toThrow(/another|kept-out/);
  });

  it('that is none, because nobody answers or no file is named, says so', async () => {
    await protectKeyFile(settings(AWS), home, wrapping(AWS));
    await expect(fileKeys({ ...settings(AWS), kmsUrl: 'http://127.0.0.1:1' }, home)).rejects.toMatchObject({
      code: 'vault_kms_unavailable',
      message: expect.stringContaining('could not be reached'),
    });
    await expect(fileKeys({ kmsUrl }, home)).rejects.toThrow('SVC_KMS_CREDENTIALS_FILE is not set');
    const gone = { kmsUrl, kmsCredentialsFile: join(home, 'gone') };
    await expect(fileKeys(gone, home)).rejects.toThrow('ENOENT');
  });
});

describe('the name of a key', () => {
  it('says where it is', () => {
    expect(parseKmsKey(AWS)).toMatchObject({ ok: true, value: { region: 'eu-central-1', domain: 'amazonaws.com' } });
    expect(parseKmsKey(AWS.replace('aws:kms:eu-central-1', 'aws-cn:kms:cn-north-1'))).toMatchObject({
      value: { region: 'cn-north-1', domain: 'amazonaws.com.cn' },
    });
    expect(parseKmsKey(GOOGLE)).toMatchObject({ ok: true, value: { cloud: 'google' } });
  });

  it.each([
    AWS.replace('key/', 'alias/'),
    AWS.replace('eu-central-1', 'evil.example.com/'),
    AWS.replace('eu-central-1', 'eu-central-1.evil'),
    `${GOOGLE}/cryptoKeyVersions/1`,
    GOOGLE.replace('svc', '..'),
    `${GOOGLE}?x=`,
    `${GOOGLE}\n`,
    '',
  ])('%j is none', (text) => {
    expect(parseKmsKey(text).ok).toBe(false);
  });

  it('in a file that somebody changed is checked too', async () => {
    await protectKeyFile(settings(AWS), home, wrapping(AWS));
    const own = JSON.parse(fileOf('vault.key'));
    writeFileSync(join(home, 'vault.key'), JSON.stringify({ ...own, key: `${GOOGLE}/../../..` }));
    const asked = stub.asked.length;
    await expect(fileKeys(settings(AWS), home)).rejects.toMatchObject({ code: 'vault_key_damaged' });
    expect(stub.asked).toHaveLength(asked);
  });
});
