import { html } from 'hono/html';
import type { Html } from '../frame/html.ts';

const INSTALL_STEPS = ['Review', 'Settings', 'Credentials', 'Use it'] as const;
type InstallStep = (typeof INSTALL_STEPS)[number];

/** The current step of an install. */
export function installSteps(current: InstallStep): Html {
  return steps('Steps of the install', INSTALL_STEPS, current);
}

const OWN_STEPS = ['Settings', 'Credentials', 'Use it'] as const;
export type OwnServerStep = (typeof OWN_STEPS)[number];

/** The same for a server that is in no registry. */
export function ownServerSteps(current: OwnServerStep): Html {
  return steps('Steps of the registration', OWN_STEPS, current);
}

function steps(label: string, all: readonly string[], current: string): Html {
  return html`<ol class="wizard" aria-label="${label}">
    ${all.map((step) => (step === current ? html`<li aria-current="step">${step}</li>` : html`<li>${step}</li>`))}
  </ol>`;
}
