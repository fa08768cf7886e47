import type { FuzzTarget } from './fuzz_engine.ts';
import { CONNECTOR_TARGETS } from './fuzz_targets_connectors.ts';
import { DECISION_TARGETS } from './fuzz_targets_decisions.ts';
import { GRAPHQL_TARGETS } from './fuzz_targets_graphql.ts';
import { HTTP1_TARGETS } from './fuzz_targets_http1.ts';
import { HTTP2_TARGETS } from './fuzz_targets_http2.ts';
import { INJECT_TARGETS } from './fuzz_targets_inject.ts';
import { NAME_TARGETS } from './fuzz_targets_names.ts';
import { SCRUB_TARGETS } from './fuzz_targets_scrub.ts';

/** All fuzz targets. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  ...HTTP1_TARGETS,
  ...HTTP2_TARGETS,
  ...NAME_TARGETS,
  ...DECISION_TARGETS,
  ...CONNECTOR_TARGETS,
  ...GRAPHQL_TARGETS,
  ...INJECT_TARGETS,
  ...SCRUB_TARGETS,
];
