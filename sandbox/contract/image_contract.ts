import { err, ok, type Result } from '../../shared/model/result.ts';
import type { ContainerRuntime, ImageConfig, RuntimeFailure } from '../engine/container_runtime.ts';
import { readFacts, type ImageFacts } from './image_contract_facts.ts';
import {
  agentUserOf,
  isPlainUserName,
  probeScript,
  readProbe,
  CONTRACT_VERSION,
  HELPERS,
  type ProbeReport,
} from './image_contract_probe.ts';

/** Why an image cannot run behind the proxy: each missing part, and a message. */
export interface ImageProblems {
  readonly reason: 'image_contract_not_met';
  readonly problems: readonly ImageProblem[];
  readonly message: string;
  readonly fixes: readonly string[];
}

/** A cache of images that meet the contract, by id. */
export interface ImageChecks {
  find(imageId: string): ImageFacts | null;
  keep(facts: ImageFacts): Promise<void>;
}

/** An empty cache, for callers that want every image probed. */
const NO_IMAGE_CHECKS: ImageChecks = { find: () => null, keep: () => Promise.resolve() };

/**
 * Checks if an image meets the contract for images behind the proxy (docs/image-contract.md). `svc image check`, `svc launch`
 * and plans all use this check. It reads the image's settings and runs one container of it without a network. An image id never
 * changes its content, so a passed check is cached; failed ones are not.
 */
export async function checkImage(
  runtime: Pick<ContainerRuntime, 'inspectImage' | 'runProbe'>,
  image: string,
  checks: ImageChecks = NO_IMAGE_CHECKS,
): Promise<Result<ImageFacts, ImageProblems | RuntimeFailure>> {
  const config = await runtime.inspectImage(image);
  if (!config.ok) return config;
  const known = checks.find(config.value.id);
  if (known !== null) return ok(known);
  const checked = await probe(runtime, image, config.value);
  if (checked.ok) await checks.keep(checked.value);
  return checked;
}

async function probe(
  runtime: Pick<ContainerRuntime, 'runProbe'>,
  image: string,
  config: ImageConfig,
): Promise<Result<ImageFacts, ImageProblems | RuntimeFailure>> {
  const agentUser = agentUserOf(config);
  if (!isPlainUserName(agentUser)) return err(refusal(image, [oddUser(agentUser)]));
  const output = await runtime.runProbe(config.id, probeScript(agentUser));
  if (!output.ok)
    return output.error.reason === 'engine_refused' ? err(refusal(image, [noShellProblem(output.error)])) : output;
  const report = readProbe(output.value);
  const problems = problemsOf(report, agentUser);
  if (problems.length > 0) return err(refusal(image, problems));
  const facts = readFacts(config.id, report);
  return facts.ok ? facts : err(refusal(image, [helpersSpeakOtherwise(facts.error)]));
}

function refusal(image: string, problems: readonly ImageProblem[]): ImageProblems {
  const list = problems.map((problem) => problem.message).join('; ');
  const message = `the image ${JSON.stringify(image)} cannot run behind the proxy: ${list}`;
  return { reason: 'image_contract_not_met', problems, message, fixes: fixesFor(image, problems) };
}

function oddUser(user: string): ImageProblem {
  const message = `the image's user ${JSON.stringify(user)} is not a plain user name`;
  return { missing: 'agent_user', message, dockerfile: ['RUN useradd --create-home agent', 'USER agent'] };
}

function noShellProblem(problem: RuntimeFailure): ImageProblem {
  const message = `/bin/sh cannot be run in it, which the helpers need (${problem.message})`;
  return { missing: 'shell', message, dockerfile: ["FROM a base that has /bin/sh, for this machine's architecture"] };
}

function helpersSpeakOtherwise(fact: string): ImageProblem {
  const message = `its helpers' check printed no valid value for "${fact}"`;
  return { missing: 'helper', message, dockerfile: [] };
}

/** A missing part of an image, and the Dockerfile lines that add it. */
interface ImageProblem {
  /** A code for the missing part: `helper`, `proxy_folder`, `agent_user` ... */
  readonly missing: string;
  readonly message: string;
  readonly dockerfile: readonly string[];
}

/** The document with the requirements for an image; part of every refusal (specification section 1). */
const CONTRACT_DOCUMENT = 'docs/image-contract.md (the bring-your-own-image proxy contract)';

/** The lines that add the helpers; the files are beside this project's Dockerfile. */
const ADD_HELPERS = [
  `COPY ${HELPERS.join(' ')} /usr/local/bin/`,
  'COPY image-contract guard.sh agent_user.sh client_trust.sh /usr/local/share/svc/',
] as const;

/** The meaning of each exit code of the helpers' check, with the Dockerfile lines that fix it. */
const CHECK_PROBLEMS: Readonly<Record<number, { readonly missing: string; readonly dockerfile: readonly string[] }>> = {
  10: { missing: 'root_start', dockerfile: [] },
  11: { missing: 'proxy_folder', dockerfile: ['RUN mkdir -p /etc/svc/proxy'] },
  13: { missing: 'writable_trust_store', dockerfile: [] },
  14: { missing: 'trust_store', dockerfile: ['RUN mkdir -p /etc/ssl/certs'] },
  15: { missing: 'java_trust_store', dockerfile: [] },
  17: { missing: 'root_owned_paths', dockerfile: [] },
  19: { missing: 'agent_user', dockerfile: ['RUN useradd --create-home agent', 'USER agent'] },
  20: { missing: 'change_of_user', dockerfile: ['RUN apt-get install -y util-linux   # Alpine: apk add setpriv'] },
  21: { missing: 'helper', dockerfile: ADD_HELPERS },
};

/** Everything that prevents an image from running behind the proxy; empty if nothing does. */
export function problemsOf(report: ProbeReport, agentUser: string): readonly ImageProblem[] {
  const problems = [...findMissingHelpers(report), ...findMissingBasics(report, agentUser)];
  // The check stops at the first missing basic, and those are already listed.
  if (problems.length > 0) return problems;
  return report.check === null ? [helpersSilent()] : checkProblems(report.check);
}

function findMissingHelpers(report: ProbeReport): ImageProblem[] {
  const gone = HELPERS.filter((helper) => report.missing.includes(helper));
  const version = report.facts.get('contract') ?? '';
  if (gone.length > 0) {
    const message = `the image has no ${gone.join(', ')} in /usr/local/bin or another system folder`;
    return [{ missing: 'helper', message, dockerfile: ADD_HELPERS }];
  }
  if (version === CONTRACT_VERSION) return [];
  const found = version === '' ? 'names no version of the contract' : `is made for version ${version} of the contract`;
  const message = `the image ${found} in /usr/local/share/svc/image-contract, but this svc needs version ${CONTRACT_VERSION}`;
  return [{ missing: 'contract_version', message, dockerfile: ADD_HELPERS }];
}

function findMissingBasics(report: ProbeReport, agentUser: string): ImageProblem[] {
  const problems: ImageProblem[] = [];
  if (report.missing.includes('/etc/svc/proxy')) {
    const message = 'the image has no folder /etc/svc/proxy, where the CA of the session is mounted';
    problems.push({ missing: 'proxy_folder', message, dockerfile: ['RUN mkdir -p /etc/svc/proxy'] });
  }
  if (report.missing.includes('user')) {
    const message = `the image has no user "${agentUser}" for the agent's command to run as`;
    const dockerfile = [
      `RUN useradd --create-home ${agentUser}   # BusyBox: adduser -D ${agentUser}`,
      `USER ${agentUser}`,
    ];
    problems.push({ missing: 'agent_user', message, dockerfile });
  }
  if (report.missing.includes('trust-store')) {
    const message = 'the image has no trust store: neither /etc/ssl/certs nor one of another known layout';
    problems.push({ missing: 'trust_store', message, dockerfile: ['RUN mkdir -p /etc/ssl/certs'] });
  }
  return problems;
}

function checkProblems(check: NonNullable<ProbeReport['check']>): ImageProblem[] {
  if (check.exitCode === 0) return [];
  const known = CHECK_PROBLEMS[check.exitCode] ?? { missing: 'helper', dockerfile: ADD_HELPERS };
  const said = check.said === '' ? 'the helpers of the image do not work' : check.said;
  return [{ ...known, message: `${said} (exit ${check.exitCode})` }];
}

function helpersSilent(): ImageProblem {
  return { missing: 'helper', message: 'the helpers of the image could not be run', dockerfile: ADD_HELPERS };
}

/** The fixes for an image's problems, one line each; the last lines are always the same. */
function fixesFor(image: string, problems: readonly ImageProblem[]): readonly string[] {
  const lines = [...new Set(problems.flatMap((problem) => problem.dockerfile))];
  return [
    `Add what is missing: svc image build --base ${image} --tag TAG`,
    ...(lines.length === 0
      ? []
      : ['Or add these lines to your Dockerfile, with the files of sandbox/image/ beside it:']),
    ...lines.map((line) => `    ${line}`),
    `Requirements for an image: ${CONTRACT_DOCUMENT}`,
    'Or run the image without the proxy and without credentials: --sandbox-proxy=off',
  ];
}
