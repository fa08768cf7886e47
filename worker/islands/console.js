// Starts the islands of a page: elements that work without scripts, and better with these.

/** @typedef {{ start: (element: HTMLElement, isAdded: boolean) => void }} Island `isAdded`: the page was opened without the element. */

/** @type {Readonly<Record<string, () => Promise<Island>>>} */
const ISLANDS = {
  brush: () => import('./brush.js'),
  copy: () => import('./copy.js'),
  decide: () => import('./decide.js'),
  'local-times': () => import('./local_times.js'),
  notify: () => import('./notify.js'),
  waiting: () => import('./waiting.js'),
  'live-list': () => import('./live_list.js'),
  'live-form': () => import('./live_form.js'),
  push: () => import('./push.js'),
  palette: () => import('./palette.js'),
  search: () => import('./search.js'),
  'view-request': () => import('./view_request.js'),
};

/** @type {WeakSet<Element>} */
const started = new WeakSet();

/** @param {ParentNode} root */
async function startIslands(root) {
  for (const element of root.querySelectorAll('[data-island]')) {
    if (!(element instanceof HTMLElement)) continue;
    // What stayed while its list was brought up to date has its island already.
    if (started.has(element)) continue;
    started.add(element);
    const load = ISLANDS[element.dataset['island'] ?? ''];
    if (load !== undefined) (await load()).start(element, root !== document);
  }
}

document.addEventListener('svc:shown', ({ target }) => {
  if (target instanceof HTMLElement) void startIslands(target);
});
void startIslands(document);
