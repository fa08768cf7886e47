import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CA_VARIABLES } from '../../sandbox/launch/session_environment.ts';
import { describeContainers } from '../containers/container_world.ts';
import type { Finished } from '../support/program.ts';
import { createTestCa } from '../support/test_ca.ts';
import { CA_PATH as CA, ENTRY, type ImageBench, openImageBench, type StartOptions } from './agent_container.ts';

const BUNDLE = '/etc/svc/trust/bundle.pem';
const START = `${ENTRY} -- echo 'it ran'`;
/** Follows what a start printed. */
const END = 'that was one start';

describeContainers.each(['debian', 'busybox'] as const)('the start of a container (%s)', (layout) => {
  let bench: ImageBench;
  let image: string;
  beforeAll(async () => {
    bench = await openImageBench();
    image = bench.images[layout];
  });
  afterAll(() => bench.clear());

  const run = async (script: string, options = {}): Promise<string> => {
    const done = await bench.start(image, ['--', 'sh', '-c', script], options);
    if (done.code !== 0) throw new Error(`exit ${done.code}: ${done.stderr}`);
    return done.stdout.trim();
  };

  it('becomes the agent user permanently, and keeps no rights of root', async () => {
    const status = await run(
      'grep -E "^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs)" /proc/self/status; id -un',
    );
    expect(
      status
        .replaceAll(/[\t ]+/g, ' ')
        .split('\n')
        .map((line) => line.trim()),
    ).toEqual([
      'Uid: 1000 1000 1000 1000',
      'Gid: 1000 1000 1000 1000',
      'Groups: 1000',
      'CapInh: 0000000000000000',
      'CapPrm: 0000000000000000',
      'CapEff: 0000000000000000',
      'CapAmb: 0000000000000000',
      'NoNewPrivs: 1',
      'agent',
    ]);
  });

  it("gives the command its home and streams, the image's PATH and umask, and no open file", async () => {
    const told = await run(
      'echo "$HOME $USER $LOGNAME $SHELL"; echo "$PATH"; umask; echo x >/dev/stderr; exec ls /proc/self/fd',
      { flags: ['--env', 'PATH=/odd:/usr/bin:/bin'] },
    );
    const [who, path, umask, ...descriptors] = told.split('\n');
    expect(who).toMatch(/^\/home\/agent agent agent \/bin\/(ba)?sh$/);
    expect([path, umask]).toEqual(['/odd:/usr/bin:/bin', '0022']);
    // The fourth is the folder that `ls` itself opens.
    expect(descriptors).toEqual(['0', '1', '2', '3']);
  });

  it('passes arguments unchanged', async () => {
    const odd = ['a b', "it's", '"', '$(id)', '-n', '--', '', 'two\nlines', '*', '\\'];
    const done = await bench.start(image, ['--', 'sh', '-c', 'printf "<%s>" "$@"', 'x', ...odd]);
    expect(done.stdout).toBe(odd.map((word) => `<${word}>`).join(''));
  });

  /**
   * Starts of a command as root of one container, one after the other, each with what has to precede it. Gives what each
   * printed; the last line is its code. A good start follows them: nothing is left that would make one bad.
   */
  const startEach = async (scripts: readonly string[], options: StartOptions = {}): Promise<string[]> => {
    const before = scripts.map((script) => `(${script}) 2>&1; echo "code $?"; echo ${END}`).join('\n');
    const done = await bench.start(image, ['--', 'echo', 'it ran'], { ...options, before });
    const said = done.stdout.split(`${END}\n`);
    expect([done.code, done.stderr, said.pop()]).toEqual([0, '', 'it ran\n']);
    return said;
  };

  it('ends with the code of the command; with 127 if it does not exist, 126 if it cannot be executed, 2 without one', async () => {
    expect((await bench.start(image, ['--', 'sh', '-c', 'exit 42'])).code).toBe(42);
    const commands = ['no-such-command', '-x', '/etc/passwd', ''];
    const said = await startEach(commands.map((command) => `${ENTRY} -- ${command}`));
    expect(codesOf(said)).toEqual(['code 127', 'code 127', 'code 126', 'code 2']);
  });

  it('points every CA variable at the roots of the image and the CA of the session', async () => {
    const told = await run(`env; echo ---; cat ${BUNDLE}`, { flags: ['--env', 'SSL_CERT_DIR=/elsewhere'] });
    const [environment = '', bundle = ''] = told.split('\n---\n');
    expect(environment.split('\n')).toEqual(expect.arrayContaining(CA_VARIABLES.map((name) => `${name}=${BUNDLE}`)));
    expect(environment).not.toContain('SSL_CERT_DIR');
    expect(environment).not.toMatch(/^SVC_(KEPT|AGENT|PROXY|IMAGE)/m);
    expect(bundle).toContain(bench.caPem.trim());
    expect(bundle.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(50);
  });

  it('adds the CA to the system store once, even after several starts', async () => {
    const again = '/usr/local/bin/svc-install-proxy-ca && /usr/local/bin/svc-install-proxy-ca';
    const bundle = await run('cat /etc/ssl/certs/ca-certificates.crt; ls -A /etc/svc/trust', { before: again });
    expect(bundle.split(bench.caPem.trim().split('\n')[1] ?? '').length - 1).toBe(1);
    expect(bundle).not.toContain('.svc-new');
  });

  it('waits until the proxy listens', async () => {
    const id = await bench.startDetached(image, ['--', 'echo', 'after'], {
      flags: ['--env', 'SVC_PROXY_WAIT=127.0.0.1:7421'],
    });
    expect(await bench.engine.docker('logs', id)).toBe('');
    const listener = layout === 'debian' ? ['python3', '-c', PYTHON_LISTENER] : ['httpd', '-f', '-p', '127.0.0.1:7421'];
    await bench.engine.docker('exec', '--detach', id, ...listener);
    expect(await bench.engine.docker('wait', id)).toBe('0');
    expect(await bench.engine.docker('logs', id)).toBe('after');
  });

  const attempt = (options: StartOptions): Promise<Finished> => bench.start(image, ['--', 'echo', 'it ran'], options);
  const expectRefusals = async (refused: readonly Refused[], options: StartOptions = {}): Promise<void> => {
    const said = await startEach(
      refused.map(([script]) => script),
      options,
    );
    expect(codesOf(said)).toEqual(refused.map(([, code]) => `code ${code}`));
    expect(said).toEqual(refused.map(([, , words]) => expect.stringMatching(words)));
    expect(said.join('')).not.toContain('it ran');
  };

  describe('refuses, and runs nothing', () => {
    it('without root', async () => {
      expect(await attempt({ flags: ['--user', '1000'] })).toEqual(refusal(10, /has to run as root/));
    });

    it('with a device in the place of the CA', async () => {
      expect(await attempt({ ca: '/dev/zero' })).toEqual(refusal(12, /not a file/));
    });

    it('on a read-only root file system', async () => {
      expect(await attempt({ flags: ['--read-only'] })).toEqual(refusal(13, /root file system .* is read-only/));
    });

    it('for an unfit agent user, a loader path that the agent could fill, or a wrong SVC_PROXY_WAIT', async () => {
      const users = ['nope', 'root', '0', '-x', 'a/b', ''];
      const loaders = ['lib', '/home/agent/lib', '/usr/lib:', '/tmp'];
      const addresses = ['10.0.0.1:7421', '127.0.0.1:', '127.0.0.1:x', '7421'];
      await expectRefusals([
        ...users.map((user): Refused => [`SVC_AGENT_USER='${user}' ${START}`, 19, /user/i]),
        ...loaders.map((path): Refused => [`LD_LIBRARY_PATH=${path} ${START}`, 17, /LD_LIBRARY_PATH/]),
        ...addresses.map((address): Refused => [`SVC_PROXY_WAIT=${address} ${START}`, 2, /SVC_PROXY_WAIT/]),
      ]);
    });

    it('without a CA, with something else in its place, or without a part of the image', async () => {
      const folder = bench.folder('cas');
      const wrong = WRONG_CAS.map(([, content], index): Refused => {
        writeFileSync(join(folder, String(index)), content(bench.caPem));
        return [`cp /cas/${index} ${CA}; ${START}`, 12, /not exactly one certificate|cannot be read/];
      });
      writeFileSync(join(folder, 'good'), bench.caPem);
      await expectRefusals(
        [
          [START, 12, /ca\.pem is missing/],
          [inBetween(`mkdir ${CA}`, `rmdir ${CA}`), 12, /not a file/],
          ...wrong,
          [`cp /cas/good ${CA}; ${without('/etc/svc/proxy')}`, 11, /RUN mkdir -p \/etc\/svc\/proxy/],
          [without('/home/agent'), 19, /home .* missing/],
          [without('/etc/ssl'), 14, /no trust store of a known layout/],
          [without('/usr/local/share/svc/guard.sh'), 21, /guard\.sh is missing/],
        ],
        { ca: null, flags: ['--volume', `${folder}:/cas:ro`] },
      );
    });
  });

  it('ignores a hostile environment', async () => {
    const flags = [
      'PATH=/nope',
      'IFS=/',
      'ENV=/nope',
      'BASH_ENV=/nope',
      'CDPATH=/',
      'PS4=$(touch /tmp/traced)',
      'SHELLOPTS=xtrace',
    ];
    const more = ['OPENSSL_CONF=/nope', 'TMPDIR=/nope', 'LC_ALL=C.UTF-8', 'LD_LIBRARY_PATH=/usr/lib', 'TIME_STYLE=+%n'];
    const script = 'echo "$PATH $TMPDIR $LC_ALL $LD_LIBRARY_PATH"; [ ! -e /tmp/traced ]';
    const done = await bench.start(image, ['--', '/bin/sh', '-c', script], {
      flags: [...flags, ...more].flatMap((one) => ['--env', one]),
    });
    expect(done).toMatchObject({ code: 0, stdout: '/nope /nope C.UTF-8 /usr/lib\n' });
  });

  describe('files planted by an image', () => {
    it('a link in place of the bundle leads nowhere', async () => {
      const folder = bench.folder('mounted');
      const done = await bench.start(image, ['--', 'true'], {
        flags: ['--volume', `${folder}:/mnt`],
        before:
          'echo keep >/mnt/victim; rm -f /etc/ssl/cert.pem; ln -sf /mnt/victim /etc/ssl/certs/ca-certificates.crt',
      });
      expect(done.code).toBe(13);
      expect(contentOf(folder)).toBe('keep\n');
    });

    it("links in place of the session's files are replaced, not followed", async () => {
      const before = `touch /victim; chmod 666 /victim; mkdir -p /etc/svc/trust
        for file in /etc/svc/trust/.svc-new /etc/svc/trust/bundle.pem /etc/svc/trust/ca.pem /etc/ssl/certs/.svc-new; do ln -sf /victim $file; done`;
      expect(await run('cat /victim; find /etc/svc/trust /etc/ssl/certs -name "bundle.pem" -type f', { before })).toBe(
        BUNDLE,
      );
    });

    it('a link in place of the folder is replaced', async () => {
      const before = 'rm -rf /etc/svc/trust; ln -s /home/agent /etc/svc/trust';
      expect(await run('ls -A /home/agent; [ ! -L /etc/svc/trust ] && echo ours', { before })).toMatch(
        /^workspace\nours$/,
      );
    });
  });

  it.each(['/etc/svc/trust', '/etc/ssl/certs'])('a host folder mounted at %s is not changed', async (path) => {
    const folder = bench.folder('mounted');
    const own = (await createTestCa()).pem;
    writeFileSync(join(folder, 'ca-certificates.crt'), own);
    const done = await bench.start(image, ['--', 'echo', 'it ran'], { flags: ['--volume', `${folder}:${path}`] });
    expect(done.stdout).toBe('');
    expect([13, 17]).toContain(done.code);
    expect(contentOf(folder)).toBe(own);
  });
});

/** A script with a start, and how that is refused: the code and words of the reason. */
type Refused = readonly [script: string, code: number, words: RegExp];

const WRONG_CAS: readonly [string, (pem: string) => string][] = [
  ['nothing', () => ''],
  ['zeroes', () => '\0'.repeat(3_000_000)],
  ['text', () => 'hello\n'],
  ['half a certificate', (pem) => pem.slice(0, 200)],
  ['two certificates', (pem) => `${pem}\n${pem}`],
  ['a certificate and a key', (pem) => `${pem}\n-----BEGIN PRIVATE KEY-----\nMIG=\n-----END PRIVATE KEY-----\n`],
  ['a certificate after a line of text', (pem) => `x\n${pem}`],
  ['a certificate that is none', () => '-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n'],
  ['a certificate with shell words', (pem) => pem.replace('\n', '\nMI$(touch /tmp/x)\n')],
];

/** Expects that the start ended before the command, with a reason. */
function refusal(code: number, words: RegExp): Finished {
  return { code, signal: null, stdout: '', stderr: expect.stringMatching(words) };
}

const PYTHON_LISTENER = `
import socket, time
listener = socket.socket()
listener.bind(('127.0.0.1', 7421))
listener.listen()
time.sleep(60)
`;

/** The contents of all files in a folder of this machine. */
function contentOf(folder: string): string {
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('');
}

function codesOf(said: readonly string[]): (string | undefined)[] {
  return said.map((text) => text.split('\n').at(-2));
}

/** A start of the command between two others; its code is that of the start. */
function inBetween(before: string, after: string): string {
  return `${before}; ${START}; code=$?; ${after}; exit $code`;
}

function without(path: string): string {
  return inBetween(`mv ${path} /put-away`, `mv /put-away ${path}`);
}
