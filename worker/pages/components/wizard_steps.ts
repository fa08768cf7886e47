import { html } from 'hono/html';
import type { Html } from '../html.ts';

const INSTALL_STEPS = ['Review', 'Settings', 'Credentials', 'Use it'] as const;
export type InstallStep = (typeof INSTALL_STEPS)[number];

/** Where in an install one is. */
export function installSteps(current: InstallStep): Html {
  return html`<ol class="wizard" aria-label="Steps of the install">
    ${INSTALL_STEPS.map((step) =>
      step === current ? html`<li aria-current="step">${step}</li>` : html`<li>${step}</li>`,
    )}
  </ol>`;
}
