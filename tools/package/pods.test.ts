import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';

// The manifests of docs/guides/pods.md: what they must not lose.

const FOLDER = new URL('pods/', import.meta.url).pathname;

const container = z.looseObject({
  name: z.string(),
  securityContext: z.looseObject({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.boolean().optional(),
    runAsUser: z.number().optional(),
    capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
  }),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().optional() })),
});
const pod = z.looseObject({
  automountServiceAccountToken: z.literal(false),
  enableServiceLinks: z.literal(false),
  hostNetwork: z.undefined().optional(),
  shareProcessNamespace: z.literal(false).optional(),
  securityContext: z.looseObject({
    runAsNonRoot: z.literal(true),
    seccompProfile: z.object({ type: z.literal('RuntimeDefault') }),
  }),
  initContainers: z.array(container).default([]),
  containers: z.array(container),
  volumes: z.array(z.looseObject({ name: z.string() })),
});
const template = z.looseObject({ metadata: z.object({ labels: z.record(z.string(), z.string()) }), spec: pod });
const document = z.looseObject({ kind: z.string(), spec: z.looseObject({ template: template.optional() }).optional() });

const documents = readdirSync(FOLDER).flatMap((file) =>
  parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8'), { merge: true }).map((each) => {
    if (each.errors.length > 0) throw new Error(`${file}: ${each.errors.join('; ')}`);
    return document.parse(each.toJS());
  }),
);
const pods = documents.flatMap((each) => each.spec?.template?.spec ?? []);

describe('the manifests for pods', () => {
  it('have pods without rights, and without the token that every pod gets', () => {
    expect(pods).toHaveLength(2);
  });

  it('hold no secret and no right in the cluster', () => {
    const kinds = documents.map(({ kind }) => kind);
    expect(kinds).not.toContain('Secret');
    expect(kinds.filter((kind) => /Role|Binding/.test(kind))).toEqual([]);
    const text = readdirSync(FOLDER)
      .map((file) => readFileSync(join(FOLDER, file), 'utf8'))
      .join('\n');
    expect(text).not.toMatch(/SVC_VAULT_KEY|SVC_DATABASE_TOKEN|-----BEGIN|stringData/);
  });

  it('list every file', () => {
    const kustomization = documents.find(({ kind }) => kind === 'Kustomization');
    const resources = z.array(z.string()).parse(kustomization?.['resources']);
    expect(resources.toSorted()).toEqual(
      readdirSync(FOLDER)
        .filter((file) => file !== 'kustomization.yaml')
        .toSorted(),
    );
  });

  it('give the token and the keys to the sidecar alone, and the session to the agent to read', () => {
    const [job] = pods.filter((each) => each.initContainers.length > 0);
    const [svc] = job?.initContainers ?? [];
    const [agent] = job?.containers ?? [];
    expect(svc?.volumeMounts.map(({ name }) => name)).toEqual(['token', 'session', 'keys']);
    expect(agent?.volumeMounts).toEqual([{ name: 'session', mountPath: '/run/session', readOnly: true }]);
    expect(agent?.securityContext.runAsUser).not.toBe(svc?.securityContext.runAsUser);
    expect(job?.['shareProcessNamespace']).toBe(false);
  });

  it('ask for a token that only the control plane takes', () => {
    const kustomization = documents.find(({ kind }) => kind === 'Kustomization');
    const url = /SVC_CONTROL_URL=(\S+?)"/.exec(JSON.stringify(kustomization))?.[1];
    const audiences = JSON.stringify(pods).match(/"audience":"[^"]*"/g);
    expect(audiences).toEqual([`"audience":"${url}"`]);
  });

  it('close the network of every pod of both namespaces, and no private address is open', () => {
    const policies = documents.filter(({ kind }) => kind === 'NetworkPolicy');
    expect(policies).toHaveLength(2);
    for (const { spec } of policies) {
      expect(spec).toMatchObject({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
    }
    const agents = JSON.stringify(policies.find(({ spec }) => JSON.stringify(spec?.['ingress']) === '[]'));
    for (const range of [
      '10.0.0.0/8',
      '172.16.0.0/12',
      '192.168.0.0/16',
      '169.254.0.0/16',
      '100.64.0.0/10',
      'fc00::/7',
    ]) {
      expect(agents).toContain(range);
    }
  });
});
