import { z } from 'zod';
import { err, ok, type Result } from '../../shared/model/result.ts';
import { CONTRACT_VERSION, type ProbeReport } from './image_contract_probe.ts';

const LAYOUTS = ['debian', 'alpine', 'fedora', 'suse', 'arch'] as const;

const absolutePath = z
  .string()
  .regex(/^\/[!-~]*$/)
  .max(500);
const count = z.number().int().nonnegative();

/** The facts of an image that meets the contract. The schema of the cache and of an image's own output. */
export const imageFacts = z.strictObject({
  imageId: z.string().min(1).max(200),
  contractVersion: z.literal(CONTRACT_VERSION),
  /** The user that commands run as. Its id is never 0. */
  agentUser: z
    .string()
    .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/)
    .max(64),
  uid: count.positive(),
  gid: count,
  home: absolutePath,
  /** The layout of its trust store. */
  layout: z.enum(LAYOUTS),
  hasJava: z.boolean(),
  hasCertutil: z.boolean(),
  /** Full paths, because an image's PATH may begin with a folder that the agent can write. */
  entry: absolutePath,
  stepRunner: absolutePath,
  /** Why it cannot run steps of plans; null if it can. */
  /** The Node that svc-mcp uses; null if the image has no working svc-mcp. */
  mcpNode: z
    .string()
    .regex(/^v\d{1,3}\.\d{1,4}\.\d{1,4}$/)
    .nullable(),
  stepsRefused: z.string().max(1_000).nullable(),
});
export type ImageFacts = Readonly<z.infer<typeof imageFacts>>;

/** The facts of a probe without problems; the error names the invalid fact. */
export function readFacts(imageId: string, { facts }: ProbeReport): Result<ImageFacts, string> {
  const steps = facts.get('steps');
  const parsed = imageFacts.safeParse({
    imageId,
    contractVersion: facts.get('contract'),
    agentUser: facts.get('agent'),
    uid: numberOf(facts.get('uid')),
    gid: numberOf(facts.get('gid')),
    home: facts.get('home'),
    layout: facts.get('layout'),
    hasJava: facts.get('java') === 'yes',
    hasCertutil: facts.get('certutil') === 'yes',
    entry: facts.get('svc-run-with-proxy-ca'),
    stepRunner: facts.get('svc-run-step'),
    mcpNode: facts.get('mcp-node') ?? null,
    stepsRefused: steps === 'yes' ? null : (steps ?? 'the image does not say whether steps can run in it'),
  });
  if (parsed.success) return ok(parsed.data);
  return err(String(parsed.error.issues[0]?.path[0] ?? 'the image'));
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}
