import { IS_FULL } from '../support/full_counts.ts';
import { startHostedOnDeno, startHostedOnNode, startHostedOnWorkerd } from './team_runtimes.ts';
import { describeTeamStory } from './team_story.ts';

// Issue 19: what a team does with a hosted control plane, from its first owner to the removal of a person.

const RUNTIMES = { workerd: startHostedOnWorkerd, Node: startHostedOnNode, Deno: startHostedOnDeno };

for (const [runtime, start] of Object.entries(RUNTIMES).slice(0, IS_FULL ? undefined : 1)) {
  describeTeamStory(runtime, start);
}
