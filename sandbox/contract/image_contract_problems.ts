import { CONTRACT_VERSION, HELPERS, type ProbeReport } from './image_contract_probe.ts';

/** A missing part of an image, and the Dockerfile lines that add it. */
export interface ImageProblem {
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
export function fixesFor(image: string, problems: readonly ImageProblem[]): readonly string[] {
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
