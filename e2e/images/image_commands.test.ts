import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { describeContainers } from '../containers/container_world.ts';
import { variantOf } from '../support/container_images.ts';
import { sampleOf } from '../support/full_counts.ts';
import { type Finished, run, SVC } from '../support/program.ts';
import { type ImageBench, openImageBench } from './agent_container.ts';

const checkReply = z.object({ problems: z.array(z.object({ missing: z.string() })) });

describeContainers('svc image', () => {
  let bench: ImageBench;
  let home: string;
  beforeAll(async () => {
    bench = await openImageBench();
    home = bench.folder('home');
  });
  afterAll(() => bench.clear());

  const svc = (...args: string[]): Promise<Finished> =>
    run(SVC, args, { env: { ...bench.engine.environment, SVC_HOME: home } });
  const problemsOf = async (image: string): Promise<unknown[]> => {
    const done = await svc('image', 'check', image, '--json');
    expect(done.code).toBe(1);
    return checkReply.parse(JSON.parse(done.stdout)).problems.map((problem) => problem.missing);
  };

  it('accepts an image with the helpers, and stores the result readable by its owner only', async () => {
    const done = await svc('image', 'check', bench.images.debianJava, '--json');
    expect(JSON.parse(done.stdout)).toMatchObject({
      ok: true,
      agent_user: 'agent',
      uid: 1000,
      layout: 'debian',
      java: true,
      steps_refused: null,
    });
    const file = join(home, 'image_checks.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toContain(
      await bench.engine.docker('image', 'inspect', '--format', '{{.Id}}', bench.images.debianJava),
    );
  });

  it('lists everything that an image lacks, with the lines that add it, the contract and how to do without', async () => {
    const done = await svc('image', 'check', bench.images.debianBase);
    expect(done).toMatchObject({ code: 1, stdout: '' });
    for (const words of [
      'svc-run-with-proxy-ca',
      'COPY ',
      'RUN mkdir -p /etc/svc/proxy',
      'RUN useradd',
      'docs/image-contract.md',
      'bring-your-own-image proxy contract',
      '--sandbox-proxy=off',
      'svc image build --base',
    ]) {
      expect(done.stderr).toContain(words);
    }
    expect(await problemsOf(bench.images.busyboxBase)).toEqual(['helper', 'proxy_folder', 'agent_user']);
  });

  const lacking: [string[], string[]][] = [
    [
      ['helper', 'proxy_folder'],
      ['RUN chmod a-x /usr/local/bin/svc-run-step', 'RUN rm -rf /etc/svc/proxy && ln -s /tmp /etc/svc/proxy'],
    ],
    [['agent_user'], ['RUN sed -i "s/^agent:x:1000/agent:x:0/" /etc/passwd']],
    [['root_owned_paths'], ['ENV LD_LIBRARY_PATH=/home/agent/lib']],
    [['shell'], ['RUN rm /bin/sh']],
    [['helper'], ['RUN rm /usr/local/bin/svc-run-step']],
    [['helper'], ['RUN rm /usr/local/share/svc/guard.sh']],
    [['contract_version'], ['RUN echo 2 >/usr/local/share/svc/image-contract']],
    [['proxy_folder'], ['RUN rm -rf /etc/svc/proxy']],
    [['agent_user'], ['USER somebody']],
    [['trust_store'], ['RUN rm -rf /etc/ssl']],
    [['change_of_user'], ['RUN rm -f /usr/bin/setpriv /sbin/runuser /usr/sbin/chroot /bin/su']],
  ];
  it.each(sampleOf(lacking, 4))('names %j missing after: %j', async (missing, lines) => {
    const isLast = missing.includes('shell') || lines.some((line) => line.startsWith('USER'));
    const all = ['USER root', 'ENV X=1', ...lines, ...(isLast ? [] : ['USER agent'])];
    expect(await problemsOf(await variantOf(bench.engine, bench.images.debian, ...all))).toEqual(missing);
  });

  it('uses the user that the image names', async () => {
    const image = await variantOf(
      bench.engine,
      bench.images.debian,
      'USER root',
      'RUN useradd --create-home --uid 1234 dev',
      'USER 1234:1234',
    );
    const done = await svc('image', 'check', image, '--json');
    expect(JSON.parse(done.stdout)).toMatchObject({ ok: true, agent_user: 'dev', uid: 1234, home: '/home/dev' });
  });

  it('names an unknown image', async () => {
    const done = await svc('image', 'check', 'no-such-image-here');
    expect(done).toMatchObject({ code: 1, stdout: '' });
    expect(done.stderr).toContain('no image "no-such-image-here"');
  });

  it.each(sampleOf(['debianBase', 'busyboxBase'] as const, 1))(
    'builds an image that passes, without the network (%s)',
    async (base) => {
      const tag = `svc-e2e-variant:built-${base.toLowerCase()}`;
      const done = await svc(
        'image',
        'build',
        '--base',
        bench.images[base],
        '--tag',
        tag,
        '--agent-user',
        'dev',
        '--json',
      );
      expect(done.code).toBe(0);
      const node = base === 'debianBase' ? process.version : null;
      expect(JSON.parse(done.stdout)).toMatchObject({ ok: true, image: tag, agent_user: 'dev', svc_mcp_node: node });
      expect((await bench.start(tag, ['--', 'id', '-un'], { flags: ['--env', 'SVC_AGENT_USER=dev'] })).stdout).toBe(
        'dev\n',
      );
    },
  );

  it('does not build on a base that the engine lacks', async () => {
    const done = await svc('image', 'build', '--base', 'no-such-base-here.invalid/x', '--tag', 'svc-e2e-variant:none');
    expect(done).toMatchObject({ code: 1, stdout: '' });
    expect(done.stderr).toContain('the image was not built');
  });
});
