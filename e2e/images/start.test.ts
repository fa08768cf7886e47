import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CA_VARIABLES } from '../../sandbox/launch/session_environment.ts';
import { describeContainers } from '../containers/container_world.ts';
import type { Finished } from '../support/program.ts';
import { type ImageBench, openImageBench, type StartOptions } from './agent_container.ts';

const BUNDLE = '/etc/svc/trust/bundle.pem';

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

  it.each([
    ['its own', ['sh', '-c', 'exit 42'], 42],
    ['127 for a command that does not exist', ['no-such-command'], 127],
    ['127 for one with a leading dash that does not exist', ['-x'], 127],
    ['126 for one that cannot be executed', ['/etc/passwd'], 126],
    ['2 for none', [], 2],
  ])('ends with %s', async (_what, command, code) => {
    expect((await bench.start(image, ['--', ...command])).code).toBe(code);
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

  describe.concurrent('refuses, and runs nothing', () => {
    it('without root', async () => {
      expect(await attempt({ flags: ['--user', '1000'] })).toEqual(refusal(10, /has to run as root/));
    });

    it.each(['nope', 'root', '0', '-x', 'a/b', ''])('for the agent user %j', async (user) => {
      expect(await attempt({ flags: ['--env', `SVC_AGENT_USER=${user}`] })).toEqual(refusal(19, /user/i));
    });

    it('for an agent user without a home', async () => {
      expect(await attempt({ before: 'rm -rf /home/agent' })).toEqual(refusal(19, /home .* missing/));
    });

    it('without a CA', async () => {
      expect(await attempt({ ca: null })).toEqual(refusal(12, /ca\.pem is missing/));
    });

    it('with a folder in its place', async () => {
      expect(await attempt({ ca: bench.folder('ca') })).toEqual(refusal(12, /not a file/));
    });

    it('with a device in its place', async () => {
      expect(await attempt({ ca: '/dev/zero' })).toEqual(refusal(12, /not a file/));
    });

    it.each(WRONG_CAS)('with %s in its place', async (_what, content) => {
      const ca = bench.file('ca.pem', content(bench.caPem));
      expect(await attempt({ ca })).toEqual(refusal(12, /not exactly one certificate|cannot be read/));
    });

    it('without the folder of the CA', async () => {
      const done = await attempt({ ca: null, before: 'rm -rf /etc/svc/proxy' });
      expect(done).toEqual(refusal(11, /RUN mkdir -p \/etc\/svc\/proxy/));
    });

    it('without a trust store of a known layout', async () => {
      expect(await attempt({ before: 'rm -rf /etc/ssl /etc/pki' })).toEqual(
        refusal(14, /no trust store of a known layout/),
      );
    });

    it('on a read-only root file system', async () => {
      expect(await attempt({ flags: ['--read-only'] })).toEqual(refusal(13, /root file system .* is read-only/));
    });

    it.each(['lib', '/home/agent/lib', '/usr/lib:', '/tmp'])('with loader path %s', async (path) => {
      const done = await attempt({ flags: ['--env', `LD_LIBRARY_PATH=${path}`] });
      expect(done).toEqual(refusal(17, /LD_LIBRARY_PATH/));
    });

    it.each(['10.0.0.1:7421', '127.0.0.1:', '127.0.0.1:x', '7421'])('with SVC_PROXY_WAIT=%s', async (address) => {
      const done = await attempt({ flags: ['--env', `SVC_PROXY_WAIT=${address}`] });
      expect(done).toEqual(refusal(2, /SVC_PROXY_WAIT/));
    });

    it('without a part of the programs', async () => {
      const done = await attempt({ before: 'rm /usr/local/share/svc/guard.sh' });
      expect(done).toEqual(refusal(21, /guard\.sh is missing/));
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
      expect(await catOf(bench, folder)).toBe('keep');
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
    await bench.engine.docker(
      'run',
      '--rm',
      '--user',
      '0',
      '--volume',
      `${folder}:/mnt`,
      image,
      'sh',
      '-c',
      'cp /etc/ssl/certs/ca-certificates.crt /mnt/',
    );
    const done = await bench.start(image, ['--', 'echo', 'it ran'], { flags: ['--volume', `${folder}:${path}`] });
    expect(done.stdout).toBe('');
    expect([13, 17]).toContain(done.code);
    expect(await catOf(bench, folder)).not.toContain(bench.caPem.trim().split('\n')[1]);
  });
});

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

/** The contents of all files in a host folder. */
async function catOf(bench: ImageBench, folder: string): Promise<string> {
  return bench.engine.docker(
    'run',
    '--rm',
    '--network',
    'none',
    '--volume',
    `${folder}:/mnt:ro`,
    bench.images.debianBase,
    'sh',
    '-c',
    'cat /mnt/*',
  );
}
