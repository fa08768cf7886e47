import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { z } from 'zod';
import { serviceAccountRecord } from '../../shared/wire/service_accounts.ts';
import { type HostedControlPlane, startHostedControlPlane } from '../runtimes/hosted_control_plane.ts';
import { type JobIssuer, startJobIssuer } from '../runtimes/job_issuer.ts';
import { foundIn, plantSecret } from '../support/planted_secret.ts';
import { type Finished, INSTALLED, ROOT, runOk } from '../support/program.ts';
import { createTestCa } from '../support/test_ca.ts';
import { startTlsUpstream, type TlsUpstream } from '../support/tls_upstream.ts';
import { waitFor } from '../support/wait_for.ts';
import { type Bench, describeContainers, openBench } from './container_world.ts';
import { type PodmanPlace, podmanOfRoot } from './podman_place.ts';

// The pod of tools/package/pods/agent.yaml in `podman kube play`. Podman has no kubelet: this test mounts the token in its place,
// starts the sidecar as an ordinary container, and takes this machine's network, because podman makes none here.

const HOST = 'api.example.test';
const SECRET = plantSecret();

const container = z.looseObject({
  name: z.string(),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })),
});
const job = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      spec: z.looseObject({
        initContainers: z.tuple([container.extend({ args: z.array(z.string()) })]),
        containers: z.tuple([container]),
        volumes: z.array(z.looseObject({ name: z.string() })),
      }),
    }),
  }),
});

const hostPath = (name: string, path: string): object => ({ name, hostPath: { path, type: 'Directory' } });

describeContainers('a pod of the manifests', () => {
  let bench: Bench;
  let place: PodmanPlace;
  let cluster: JobIssuer;
  let control: HostedControlPlane;
  let upstream: TlsUpstream;
  let account: string;
  let roots: string;

  async function asAdmin(path: string, body: unknown): Promise<unknown> {
    const headers = { cookie: control.cookie, origin: control.url, 'content-type': 'application/json' };
    const reply = await fetch(control.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
    return reply.json();
  }

  beforeAll(async () => {
    bench = await openBench();
    place = await podmanOfRoot();
    const archive = join(place.folder, 'image.tar');
    await bench.engine.docker('save', '--output', archive, bench.images.debianBase);
    for (const args of [
      ['load', '--input', archive],
      ['tag', bench.images.debianBase, 'localhost/pod-base:1'],
    ]) {
      const done = await place.podman(...args);
      if (done.code !== 0) throw new Error(`podman ${args.join(' ')}: ${done.stderr}`);
    }
    cluster = await startJobIssuer({
      'kubernetes.io': { namespace: 'svc-agents', serviceaccount: { name: 'agent', uid: 'u' } },
    });
    control = await startHostedControlPlane();
    const ca = await createTestCa();
    roots = ca.pem;
    upstream = await startTlsUpstream(await ca.issue([HOST]));
    const claims = { 'kubernetes.io/namespace': 'svc-agents', 'kubernetes.io/serviceaccount/name': 'agent' };
    const policy = { name: 'pods', issuer: cluster.issuer, claims, keys: await cluster.keys() };
    account = serviceAccountRecord.parse(await asAdmin('/v1/service-accounts', policy)).id;
    await asAdmin(`/v1/service-accounts/${account}/secrets`, { path: 'pod/key', value: SECRET });
    const binding = { host: HOST, scheme: 'bearer', credential_ref: 'vault://pod/key' };
    await asAdmin(`/v1/service-accounts/${account}/host-bindings`, binding);
  });
  afterAll(async () => {
    await place.podman('pod', 'rm', '--all', '--force', '--time', '5');
    await control.stop();
    await Promise.all([upstream.close(), cluster.stop()]);
    await place.remove();
    bench.clear();
  });

  /** The manifest's pod, with what a kubelet and an image would give it. */
  function podOf(agent: string, files: string): string {
    const [, manifest] = parseAllDocuments(readFileSync(join(ROOT, 'tools/package/pods/agent.yaml'), 'utf8'));
    const { initContainers, containers, volumes, ...spec } = job.parse(manifest?.toJS()).spec.template.spec;
    const [{ restartPolicy: _, startupProbe: __, ...svc }] = initContainers;
    const [own] = containers;
    const given = ['--upstream-ca=/files/ca.pem', `--resolve=${HOST}:127.0.0.1:${upstream.port}`];
    // The kubelet puts variables into arguments, and podman does not.
    const args = svc.args.map((each) => each.replace('$(SVC_SERVICE_ACCOUNT)', account));
    const mounts = [
      { name: 'svc', mountPath: '/opt/svc', readOnly: true },
      { name: 'files', mountPath: '/files', readOnly: true },
    ];
    const here = { image: 'localhost/pod-base:1', imagePullPolicy: 'Never' };
    const sidecar = { ...svc, ...here, command: ['/opt/svc/bin/svc'], args: [...args, ...given] };
    return stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'agent' },
      spec: {
        ...spec,
        hostNetwork: true,
        containers: [
          { ...sidecar, volumeMounts: [...svc.volumeMounts, ...mounts] },
          { ...own, ...here, args: ['sh', '-c', agent] },
        ],
        volumes: [
          ...volumes.filter(({ name }) => name === 'keys'),
          hostPath('session', join(files, 'session')),
          hostPath('token', join(files, 'token')),
          hostPath('files', files),
          hostPath('svc', join(files, 'svc')),
        ],
      },
    });
  }

  it('joins by its token, and its agent makes a request with a credential that it cannot see', async () => {
    const files = join(place.folder, 'files');
    mkdirSync(join(files, 'token'), { recursive: true });
    writeFileSync(join(files, 'ca.pem'), roots);
    writeFileSync(join(files, 'token/token'), await cluster.tokenFor(control.url));
    // As in the image. The package of the tests is for their own user, and finds its modules in the checkout.
    cpSync(INSTALLED, join(files, 'svc'), {
      recursive: true,
      filter: (path) => path === INSTALLED || !path.endsWith('/node_modules'),
    });
    await runOk('chmod', ['-R', 'a+rX', files]);
    await runOk('chmod', ['a+x', place.folder]);
    // The kubelet gives a folder to the pod's fsGroup, and podman knows none.
    mkdirSync(join(files, 'session'));
    await runOk('chown', ['65532:65532', join(files, 'session')]);
    const data = { SVC_CONTROL_URL: control.url, SVC_SERVICE_ACCOUNT: account };
    const settings = stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'svc-agent' }, data });
    writeFileSync(join(files, 'settings.yaml'), settings);
    const agent = `curl -sS --fail https://${HOST}/items; id -u; ls /run/token /tmp; env; touch /run/session/x; echo "ended: $?"; sleep 600`;
    writeFileSync(join(files, 'pod.yaml'), podOf(agent, files));
    const played = await place.podman(
      'kube',
      'play',
      '--configmap',
      join(files, 'settings.yaml'),
      join(files, 'pod.yaml'),
    );
    expect({ code: played.code, stderr: played.code === 0 ? '' : played.stderr }).toEqual({ code: 0, stderr: '' });
    const logs = (of: string): Promise<Finished> => place.podman('logs', `agent-${of}`);
    const isOver = async (): Promise<boolean> => {
      const sidecar = await place.podman('inspect', '--format', '{{.State.Status}}', 'agent-svc');
      return sidecar.stdout.trim() !== 'running' || (await logs('agent')).stdout.includes('ended: ');
    };
    await waitFor('the agent to have ended', isOver);
    expect((await logs('svc')).stderr).toContain('svc: the session is in /run/session');
    const { stdout, stderr } = await logs('agent');
    expect(upstream.last().headers('authorization')).toEqual([`Bearer ${SECRET}`]);
    expect(stdout).toContain('65533\n');
    expect(stdout).toContain('SSL_CERT_FILE=/run/session/ca.pem');
    expect(stderr).toContain('/run/token');
    expect(stdout).toContain('ended: 1');
    expect(foundIn(stdout + stderr, SECRET)).toEqual([]);
    expect((await place.podman('stop', '--time', '20', 'agent-svc')).code).toBe(0);
    const [exit] = z
      .array(z.object({ State: z.object({ ExitCode: z.number() }) }))
      .parse(JSON.parse((await place.podman('inspect', 'agent-svc')).stdout));
    expect(exit?.State.ExitCode).toBe(0);
    const now = await fetch(`${control.url}/v1/service-accounts/${account}`, { headers: { cookie: control.cookie } });
    expect(serviceAccountRecord.parse(await now.json())).toMatchObject({ live_sidecars: 0 });
  });
});
